"""What the wallet refuses, as one tree.

::

    InvalidArgument     InvalidAmount, InvalidBook, DuplicateHold, TooManyPlayers, DuplicateParty,
                        UnknownParty, SelfTransfer, DuplicateFee, DuplicateCap, PlayerRequired,
                        InvalidPeriod, InvalidCursor, InvalidHead
    NotFound            UnknownWallet, UnknownCurrency, UnknownHold, UnknownSettlement
    FailedPrecondition  InsufficientBalance, PlayerFrozen, HoldNotOpen, HoldTaken, HasHolds, NotOwed
    OutOfRange          BalanceOutOfRange, TimeArchived
    AlreadyExists       WalletDiffers, RequestIdReused, SettlementKeyReused, SettlementReversed
    PermissionDenied    NotYourWallet
    Aborted             WalletContended
    Unavailable         WalletUnavailable

The kit turns each into its status, with the reason, the field and the metadata.
"""

from __future__ import annotations

from collections.abc import Sequence

from fangcheng_kit.errors import (
    Aborted,
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    OutOfRange,
    PermissionDenied,
    Unavailable,
)


class InvalidAmount(InvalidArgument):
    """An amount that this currency does not have."""

    def __init__(self, amount: int, most: int, field: str) -> None:
        super().__init__(
            "INVALID_AMOUNT", f"{amount} is not within 1 and {most}, the currency's most.", field
        )


class InvalidBook(InvalidArgument):
    """A book where the currency has none, or none where it has them."""

    def __init__(self, currency: str, books: bool, field: str) -> None:
        need = "is kept in books; name one" if books else "has no books; leave the book empty"
        super().__init__("INVALID_BOOK", f"The currency {currency} {need}.", field)


class DuplicateHold(InvalidArgument):
    """Two buy-ins of one player in the same currency and book."""

    def __init__(self, player_id: str, field: str) -> None:
        super().__init__(
            "DUPLICATE_HOLD",
            f"The player {player_id} has a buy-in in this currency and book already.",
            field,
        )


class TooManyPlayers(InvalidArgument):
    """Buy-ins of more players than sit at a table."""

    def __init__(self, most: int, field: str) -> None:
        super().__init__("TOO_MANY_PLAYERS", f"Buy-ins of at most {most} players.", field)


class DuplicateParty(InvalidArgument):
    """One player on two seats."""

    def __init__(self, player_id: str, field: str) -> None:
        super().__init__("DUPLICATE_PARTY", f"The player {player_id} has a seat already.", field)


class UnknownParty(InvalidArgument):
    """A transfer from or to a seat that is not there."""

    def __init__(self, party: int, parties: int, field: str) -> None:
        super().__init__(
            "UNKNOWN_PARTY", f"There is no party {party}; the request has {parties}.", field
        )


class SelfTransfer(InvalidArgument):
    """A transfer from somebody to himself, or from the house to the house."""

    def __init__(self, field: str) -> None:
        super().__init__("SELF_TRANSFER", "Payer and payee are the same.", field)


class DuplicateCap(InvalidArgument):
    """Two caps of one settlement in the same currency and book."""

    def __init__(self, field: str) -> None:
        super().__init__(
            "DUPLICATE_CAP", "The settlement has a cap in this currency and book already.", field
        )


class DuplicateFee(InvalidArgument):
    """Two fees of one seat in the same currency and book."""

    def __init__(self, field: str) -> None:
        super().__init__(
            "DUPLICATE_FEE", "The party has a fee in this currency and book already.", field
        )


class PlayerRequired(InvalidArgument):
    """A caller who is no player must name one."""

    def __init__(self) -> None:
        super().__init__(
            "PLAYER_REQUIRED", "Only a player may leave the player out.", field="player_id"
        )


class InvalidHead(InvalidArgument):
    """A head of the hash chain that none can be."""

    def __init__(self) -> None:
        super().__init__(
            "INVALID_HEAD", "A head is hexadecimal; give it as VerifyLedger has told it.", "head"
        )


class InvalidPeriod(InvalidArgument):
    """A period that the calendar does not have."""

    def __init__(self, period: str) -> None:
        super().__init__(
            "INVALID_PERIOD",
            f"There is no period {period}; such are 2026, 2026-01, 2026-W05 and 2026-01-31.",
            "period",
        )


class InvalidCursor(InvalidArgument):
    """A cursor that no stream of entries has told."""

    def __init__(self, cursor: str) -> None:
        super().__init__("INVALID_CURSOR", f"No stream told the cursor {cursor}.", "cursor")


class UnknownWallet(NotFound):
    """No wallet of this player was opened."""

    def __init__(self, player_id: str, field: str) -> None:
        super().__init__("UNKNOWN_WALLET", f"The player {player_id} has no wallet.", field)


class UnknownCurrency(NotFound):
    """The wallet is not configured with this currency."""

    def __init__(self, currency: str, field: str) -> None:
        super().__init__("UNKNOWN_CURRENCY", f"There is no currency {currency}.", field)


class UnknownHold(NotFound):
    """No such hold, or none of this player."""

    def __init__(self, hold_id: str, field: str) -> None:
        super().__init__("UNKNOWN_HOLD", f"There is no such hold: {hold_id}.", field)


class UnknownSettlement(NotFound):
    """Nothing was settled under this key."""

    def __init__(self, key: str) -> None:
        super().__init__("UNKNOWN_SETTLEMENT", f"Nothing was settled under {key}.", field="key")


class NotOwed(FailedPrecondition):
    """More is to be collected, or written off, than is owed."""

    def __init__(self, owed: int, field: str) -> None:
        super().__init__(
            "NOT_OWED", f"The player owes {owed}, not more.", field, {"owed": str(owed)}
        )


class InsufficientBalance(FailedPrecondition):
    """Less is available than is asked for. ``player_ids``: everybody who has too little."""

    def __init__(self, player_ids: Sequence[str], field: str) -> None:
        names = ", ".join(player_ids)
        super().__init__(
            "INSUFFICIENT_BALANCE",
            f"Too little is available to {names}.",
            field,
            {"player_ids": ",".join(player_ids)},
        )


class PlayerFrozen(FailedPrecondition):
    """An operator has forbidden a player to stake. ``player_ids``: everybody of whom this holds."""

    def __init__(self, player_ids: Sequence[str], field: str) -> None:
        super().__init__(
            "PLAYER_FROZEN",
            f"May neither stake nor withdraw: {', '.join(player_ids)}.",
            field,
            {"player_ids": ",".join(player_ids)},
        )


class HoldNotOpen(FailedPrecondition):
    """Holds were released, or their time is over. ``hold_ids``: all of them."""

    def __init__(self, hold_ids: Sequence[str], field: str) -> None:
        super().__init__(
            "HOLD_NOT_OPEN",
            f"Released or expired: {', '.join(hold_ids)}.",
            field,
            {"hold_ids": ",".join(hold_ids)},
        )


class HoldTaken(FailedPrecondition):
    """Holds were handed over to another table. ``hold_ids``: all of them."""

    def __init__(self, hold_ids: Sequence[str], field: str) -> None:
        super().__init__(
            "HOLD_TAKEN",
            f"Another table has them: {', '.join(hold_ids)}.",
            field,
            {"hold_ids": ",".join(hold_ids)},
        )


class HasHolds(FailedPrecondition):
    """A player who is to be erased has money set aside, at a table or for one."""

    def __init__(self, hold_ids: Sequence[str]) -> None:
        super().__init__(
            "HAS_HOLDS",
            f"{len(hold_ids)} holds of the player are open; repeat when his table has closed, or "
            "release them.",
            "player_id",
            {"hold_ids": ",".join(hold_ids)},
        )


class BalanceOutOfRange(OutOfRange):
    """An account would leave the range of amounts."""

    def __init__(self, account: str, least: int, most: int, field: str) -> None:
        super().__init__(
            "BALANCE_OUT_OF_RANGE", f"The account {account} stays within {least} and {most}.", field
        )


class TimeArchived(OutOfRange):
    """What is asked for needs entries that were archived. ``first``: the first that is here."""

    def __init__(self, first: int, field: str) -> None:
        super().__init__(
            "TIME_ARCHIVED",
            f"Entries before {first} were archived.",
            field,
            {"first": str(first)},
        )


class WalletDiffers(AlreadyExists):
    """The wallet is open: a bot's where a person's was to be opened, or the other way round."""

    def __init__(self, player_id: str, is_bot: bool) -> None:
        whose = "a bot's" if is_bot else "a person's"
        super().__init__(
            "WALLET_DIFFERS",
            f"The wallet of {player_id} is {whose}, and stays so; take another player id.",
            "is_bot",
        )


class RequestIdReused(AlreadyExists):
    """The request id was used for another request. ``differs``: paths of the differing fields."""

    def __init__(self, request_id: str, differs: Sequence[str]) -> None:
        super().__init__(
            "REQUEST_ID_REUSED",
            f"The request {request_id} was made before with another {', '.join(differs)}.",
            "request_id",
            {"differs": ",".join(differs)},
        )


class SettlementKeyReused(AlreadyExists):
    """The key was settled with another body. ``differs``: paths of the differing fields."""

    def __init__(self, key: str, differs: Sequence[str]) -> None:
        super().__init__(
            "SETTLEMENT_KEY_REUSED",
            f"{key} was settled before with another {', '.join(differs)}.",
            "key",
            {"differs": ",".join(differs)},
        )


class SettlementReversed(AlreadyExists):
    """The settlement was taken back before, with other words. ``differs``: the differing fields."""

    def __init__(self, key: str, differs: Sequence[str]) -> None:
        super().__init__(
            "SETTLEMENT_REVERSED",
            f"{key} was reversed before with another {', '.join(differs)}.",
            "key",
            {"differs": ",".join(differs)},
        )


class NotYourWallet(PermissionDenied):
    """A player asks for another player's wallet."""

    def __init__(self) -> None:
        super().__init__("NOT_YOUR_WALLET", "A player sees his own wallet alone.", "player_id")


class WalletUnavailable(Unavailable):
    """The database fails now; whether a change was made, its key tells."""

    def __init__(self) -> None:
        super().__init__(
            "WALLET_UNAVAILABLE", "The ledger cannot be reached now; repeat the same call."
        )


class WalletContended(Aborted):
    """The database puts others first, however often it is tried; nothing was done."""

    def __init__(self) -> None:
        super().__init__("WALLET_CONTENDED", "Others were in the way; repeat the same call.")
