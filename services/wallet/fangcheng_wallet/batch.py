"""What waits at the same time, decided together: the part that both storages share.

A storage reads what the commands name into a ``Ledger``, has every command decided against it in
order, and writes all that came of it in one go. Each decision sees those before it; one that is
refused is refused alone, since nothing has been written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from fangcheng_wallet import core
from fangcheng_wallet.canonical import differences, dumps, loads
from fangcheng_wallet.desk import Desk, bounds
from fangcheng_wallet.errors import RequestIdReused, SettlementKeyReused, SettlementReversed
from fangcheng_wallet.ledger import (
    Account,
    AccountKey,
    Collected,
    Command,
    Currency,
    Done,
    Entry,
    Erased,
    Hold,
    Kind,
    Player,
    Posting,
    Reversal,
    Reverse,
    Settle,
    Settled,
    Settlement,
)
from fangcheng_wallet.masks import Masked, Written

_ANSWERS: Mapping[str, Any] = {
    "freeze": Player,
    "deposit": Entry,
    "withdraw": Entry,
    "place_holds": tuple[Hold, ...],
    "top_up_hold": Hold,
    "settle": Settled,
    "reverse": Reversal,
    "collect": Collected,
    "erase": Erased,
}
_REUSED = {"settle": SettlementKeyReused, "reverse": SettlementReversed}


class Head(NamedTuple):
    """Where the ledger ends."""

    operation: int = 0
    posting: int = 0
    time_us: int = 0


class Kept(NamedTuple):
    """What an id was used for: both as canonical JSON."""

    body: str
    answer: str


@dataclass(slots=True)
class Ledger:
    """A part of the ledger in memory, a ``desk.View``.

    Players, holds and operations that are not in it do not exist. Accounts that do not exist are in
    it as ``Account()``: one that nobody thought of reading is an error, never a balance of 0.
    """

    players: dict[str, Player] = field(default_factory=dict)
    holds: dict[str, Hold] = field(default_factory=dict)
    accounts: dict[AccountKey, Account] = field(default_factory=dict)
    operations: dict[tuple[str, str], Kept] = field(default_factory=dict)
    """By verb and key."""
    numbered: dict[int, Written] = field(default_factory=dict)
    """By number: those that are to be masked."""

    def player(self, player_id: str) -> Player | None:
        """See ``desk.View``."""
        return self.players.get(player_id)

    def account(self, key: AccountKey) -> Account:
        """See ``desk.View``."""
        if key.kind is Kind.HOLD and key not in self.accounts:
            return Account()  # of a hold that is about to be placed
        return self.accounts[key]

    def hold(self, hold_id: str) -> Hold | None:
        """See ``desk.View``."""
        return self.holds.get(hold_id)

    def settlement(self, key: str) -> Settlement | None:
        """See ``desk.View``."""
        kept = self.operations.get((core.SETTLE, key))
        return kept and Settlement(loads(kept.body, Settle), loads(kept.answer, Settled))

    def written(self, number: int) -> Written | None:
        """See ``desk.View``."""
        return self.numbered.get(number)


class Operation(msgspec.Struct, frozen=True):
    """What a decision puts on disk beside its postings."""

    number: int
    verb: str
    key: str | None
    time_us: int
    body: str
    answer: str
    first_posting: int
    last_posting: int
    labels: dict[str, str]


class Step(msgspec.Struct, frozen=True):
    """All that one command puts on disk."""

    operation: Operation | None
    postings: tuple[Posting, ...]
    placed: tuple[Hold, ...]
    changed: tuple[Hold, ...]
    """Holds of which more has changed than what remains."""
    opened: Player | None
    """The player whose wallet it opens."""
    player: Player | None
    """A player who is frozen or not from now on."""
    masked: tuple[Masked, ...] = ()
    """Operations that lose texts or labels."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What became of commands: an answer or an error for each, and what is to be written."""

    outcomes: list[Done[Any] | Exception]
    steps: list[Step]
    head: Head

    @property
    def postings(self) -> int:
        """How many are to be written."""
        return sum(len(step.postings) for step in self.steps)

    @property
    def expired(self) -> int:
        """How many holds are given back since their time is over."""
        verbs = [step.operation.verb for step in self.steps if step.operation is not None]
        return verbs.count("expire_hold")


@dataclass(frozen=True, slots=True)
class Terms:
    """What decisions need to know besides the ledger."""

    currencies: Mapping[str, Currency]
    hold_seconds: int
    new_id: Callable[[], str]

    def floors(self) -> Iterator[tuple[str, int]]:
        """The least balance of players' accounts in each currency."""
        for currency in self.currencies:
            key = AccountKey(Kind.PLAYER, "", currency, "")
            yield currency, bounds(key, self.currencies)[0]


def names_of(commands: Iterable[Command[Any]]) -> core.Names:
    """What a storage has to read first."""
    names = core.Names()
    for command in commands:
        names.add(command)
    return names


def accounts_of(commands: Sequence[Command[Any]], ledger: Ledger) -> set[AccountKey]:
    """What a storage has to read then."""
    keys = {key for command in commands for key in core.accounts(command, ledger)}
    if any(isinstance(command, Reverse) for command in commands):
        # What is reversed may be settled by the very same batch.
        for command in commands:
            if isinstance(command, Settle):
                keys.update(core.reversal_accounts(command))
    return keys


def decide_all(
    commands: Sequence[Command[Any]], ledger: Ledger, head: Head, terms: Terms, time_us: int
) -> Batch:
    """Decide commands in order; the ledger in memory follows."""
    batch: list[Done[Any] | Exception] = []
    steps: list[Step] = []
    for command in commands:
        try:
            done, step = _decide(command, ledger, head, terms, time_us)
        except Exception as error:
            # Not only a refusal: a fault of ours in one command is not the others' either.
            batch.append(error)
            continue
        batch.append(done)
        if step is not None:
            steps.append(step)
            if step.operation is not None:
                head = Head(step.operation.number, step.operation.last_posting, time_us)
    return Batch(batch, steps, head)


def _decide(
    command: Command[Any], ledger: Ledger, head: Head, terms: Terms, time_us: int
) -> tuple[Done[Any], Step | None]:
    verb, key = core.identity(command)
    body = None
    if key is not None:
        body = dumps(command)
        kept = ledger.operations.get((verb, key))
        if kept is not None:
            if kept.body != body:
                _compare(verb, key, kept, command)
            return Done(loads(kept.answer, _ANSWERS[verb]), replayed=True), None
    desk = Desk(ledger, terms.currencies, time_us, terms.hold_seconds)
    decision = core.decide(command, desk, terms.new_id)
    done = Done(decision.answer, replayed=False)
    if key is None and not decision.changes:
        return done, None
    operation = None
    if key is not None or decision.postings or decision.holds or decision.masked:
        operation = Operation(
            head.operation + 1,
            verb,
            key,
            time_us,
            body or dumps(command if decision.says is None else decision.says),
            dumps(decision.answer),
            head.posting + 1,
            head.posting + len(decision.postings),
            core.labels(command, ledger),
        )
        if key is not None:
            ledger.operations[verb, key] = Kept(operation.body, operation.answer)
    ledger.accounts.update(desk.accounts)
    placed, changed = [], []
    for hold in decision.holds:
        before = ledger.holds.get(hold.hold_id)
        if before is None:
            placed.append(hold)
        elif _kept(before) != _kept(hold):
            changed.append(hold)
        ledger.holds[hold.hold_id] = hold
    opened = player = None
    if decision.player is not None:
        if decision.player.player_id in ledger.players:
            player = decision.player
        else:
            opened = decision.player
        ledger.players[decision.player.player_id] = decision.player
    step = Step(
        operation,
        decision.postings,
        tuple(placed),
        tuple(changed),
        opened,
        player,
        decision.masked,
    )
    return done, step


def _kept(hold: Hold) -> tuple[Any, ...]:
    """All of a hold but what remains, which its account tells."""
    return hold.amount, hold.state, hold.table_id, hold.expires_at_us, hold.given_back


def _compare(verb: str, key: str, kept: Kept, command: Command[Any]) -> None:
    """Refuse a body that is not the first one under its key."""
    # A field that was added since is missing in what is kept; it then has its default.
    differs = differences(loads(kept.body, type(command)), command)
    if differs:
        raise _REUSED.get(verb, RequestIdReused)(key, differs)
