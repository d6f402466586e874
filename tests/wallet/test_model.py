"""Every storage against a plain dictionary: any verbs, in any order, with any refusals."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from fangcheng_kit.errors import ServiceError
from fangcheng_wallet.keeper import tend
from fangcheng_wallet.ledger import (
    Collect,
    Deposit,
    ExtendHolds,
    Fee,
    Freeze,
    HandOver,
    HoldRequest,
    Kind,
    LossCap,
    Party,
    PlaceHolds,
    ReleaseHolds,
    Reverse,
    Settle,
    TopUpHold,
    Transfer,
    Withdraw,
)
from fangcheng_wallet.store import Store
from tests.wallet.ledgers import PLAYERS, STORES, OpenStore
from tests.wallet.model import HOUSE, OUTSIDE, Model, Money

T = TypeVar("T")

SILVER, POINTS = ("silver", ""), ("points", "a")

players = st.sampled_from(PLAYERS)
units = st.sampled_from([SILVER, SILVER, SILVER, POINTS, ("points", "b"), ("coins", "")])
amounts = st.integers(1, 60)
seats = st.sampled_from([3, 2, 1, 0, None])
transfers = st.builds(
    lambda unit, payer, payee, amount: Transfer(unit[0], unit[1], payer, payee, amount, "win"),
    units,
    seats,
    seats,
    amounts,
).filter(lambda one: one.from_party != one.to_party)
silver_transfers = transfers.map(lambda one: replace(one, currency="silver", book=""))

# What may be wrong in some way.
any_players = st.sampled_from([*PLAYERS, "eve"])
any_units = st.sampled_from([SILVER, POINTS, ("silver", "a"), ("points", ""), ("gold", "")])
any_amounts = st.sampled_from([1, 0, -1, 999, 1_001, 2**53, 2**53 + 1])
any_transfers = st.builds(
    lambda unit, payer, payee, amount: Transfer(unit[0], unit[1], payer, payee, amount, "win"),
    any_units,
    seats,
    st.sampled_from([0, 1, 5]),
    any_amounts,
)


class Ledger(RuleBasedStateMachine):
    """Does the same to a storage and to the model, and compares after every step."""

    open_store: OpenStore

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.stack = AsyncExitStack()
        self.store: Store = self.run(self.stack.enter_async_context(self.opened()))
        self.numbers = 0
        self.reversed: set[str] = set()

    holds = Bundle("holds")
    commands = Bundle("commands")

    def opened(self) -> Any:
        return type(self).open_store(Path(self.folder.name), clock=lambda: self.model.now_us)

    def run(self, call: Awaitable[T]) -> T:
        async def wait() -> T:
            return await call

        return self.loop.run_until_complete(wait())

    def outcome(self, call: Awaitable[T]) -> T | str:
        """The answer of a call, or the reason for which it is refused."""
        try:
            return self.run(call)
        except ServiceError as error:
            return error.reason

    def new_id(self) -> str:
        self.numbers += 1
        return f"id {self.numbers}"

    @initialize(
        chips=st.lists(st.integers(0, 200), min_size=3, max_size=4),
        buy_ins=st.lists(st.integers(0, 50), min_size=4, max_size=4),
        target=holds,
    )
    def begin(self, chips: list[int], buy_ins: list[int]) -> Any:
        """Most players have a wallet, some silver and a hold."""
        for player, amount in zip(PLAYERS, chips, strict=False):
            self.open_wallet(player, player == "bo")
            if amount:
                self.move(Deposit, player, SILVER, amount)
        return self.place_holds(
            [
                HoldRequest(player, *SILVER, amount)
                for player, amount, has in zip(PLAYERS, buy_ins, chips, strict=False)
                if 0 < amount <= has
            ]
            or [HoldRequest("amy", *POINTS, 1)]
        )

    @rule(player=st.sampled_from(PLAYERS), is_bot=st.booleans())
    def open_wallet(self, player: str, is_bot: bool) -> None:
        outcome = self.outcome(self.store.open_wallet(player, is_bot=is_bot))
        if player in self.model.wallets:
            same = is_bot == (player in self.model.bots)
            assert outcome == (False if same else "WALLET_DIFFERS")
            return
        assert outcome is True
        self.model.wallets.add(player)
        if is_bot:
            self.model.bots.add(player)

    @rule(
        target=commands,
        verb=st.sampled_from([Deposit, Deposit, Withdraw]),
        player=st.one_of(players, any_players),
        unit=st.one_of(units, any_units),
        amount=st.one_of(amounts, any_amounts),
    )
    def move(
        self, verb: type[Deposit | Withdraw], player: str, unit: tuple[str, str], amount: int
    ) -> Any:
        command = verb(self.new_id(), player, *unit, amount)
        outcome = self.outcome(self.call(command))
        name = "deposit" if verb is Deposit else "withdraw"
        return self.moved(command, outcome, self.model.move(name, (player, *unit), amount))

    def moved(self, command: Deposit | Withdraw, outcome: Any, reason: str | None) -> Any:
        if reason or isinstance(outcome, str):
            assert outcome == reason
            return multiple()
        money = (command.player_id, command.currency, command.book)
        assert not outcome.replayed
        assert outcome.answer.balance_after == self.model.available[money]
        assert outcome.answer.version == self.model.entries[money]
        return command, outcome.answer

    @rule(
        target=holds,
        wanted=st.lists(
            st.builds(HoldRequest, players, st.just("silver"), st.just(""), st.integers(1, 20)),
            min_size=1,
            max_size=2,
        ),
    )
    def place_some_holds(self, wanted: list[HoldRequest]) -> Any:
        return self.place_holds(wanted)

    @rule(
        target=holds,
        wanted=st.lists(
            st.builds(
                lambda player, unit, amount: HoldRequest(player, unit[0], unit[1], amount),
                any_players,
                st.one_of(units, any_units),
                any_amounts,
            ),
            min_size=1,
            max_size=3,
        ),
    )
    def place_any_holds(self, wanted: list[HoldRequest]) -> Any:
        return self.place_holds(wanted)

    def place_holds(self, wanted: list[HoldRequest]) -> Any:
        command = PlaceHolds(self.new_id(), tuple(wanted))
        outcome = self.outcome(self.store.place_holds(command))
        reason = self.model.place(command)
        if isinstance(outcome, str) or reason:
            assert outcome == reason
            return multiple()
        assert [(h.player_id, h.currency, h.book, h.amount) for h in outcome.answer] == [
            (one.player_id, one.currency, one.book, one.amount) for one in wanted
        ]
        self.model.placed(outcome.answer)
        return multiple(*(hold.hold_id for hold in outcome.answer))

    @rule(released=st.lists(holds, min_size=1, max_size=3, unique=True), unknown=st.booleans())
    def release_holds(self, released: list[str], unknown: bool) -> None:
        hold_ids = (*released, *(["no such hold"] if unknown else []))
        outcome = self.outcome(self.store.release_holds(ReleaseHolds(hold_ids)))
        expected = self.model.release(hold_ids)
        if isinstance(outcome, str):
            assert outcome == expected
        else:
            assert [hold.remaining for hold in outcome] == expected
            assert all(hold.released for hold in outcome)

    @rule(
        some=st.lists(holds, min_size=1, max_size=2, unique=True),
        unknown=st.booleans(),
        seconds=st.sampled_from([10, 1_000]),
        table_id=st.sampled_from([None, "t1", "t1", "t2"]),
    )
    def prolong(self, some: list[str], unknown: bool, seconds: int, table_id: str | None) -> None:
        hold_ids = (*some, *(["no such hold"] if unknown else []))
        call: Awaitable[Any] = (
            self.store.extend_holds(ExtendHolds(hold_ids, seconds))
            if table_id is None
            else self.store.hand_over(HandOver(hold_ids, table_id, seconds))
        )
        outcome = self.outcome(call)
        reason = self.model.prolong(hold_ids, seconds, table_id)
        if isinstance(outcome, str) or reason:
            assert outcome == reason
        else:
            assert [(hold.table_id, hold.expires_at_us) for hold in outcome] == [
                (self.model.holds[one].table_id, self.model.holds[one].expires_at_us)
                for one in hold_ids
            ]

    @rule(
        target=commands,
        hold_id=st.one_of(holds, st.just("no such hold")),
        amount=st.one_of(amounts, any_amounts),
    )
    def top_up(self, hold_id: str, amount: int) -> Any:
        command = TopUpHold(self.new_id(), hold_id, amount)
        outcome = self.outcome(self.store.top_up_hold(command))
        reason = self.model.top_up(hold_id, amount)
        if isinstance(outcome, str) or reason:
            assert outcome == reason
            return multiple()
        hold = self.model.holds[hold_id]
        assert (outcome.answer.amount, outcome.answer.remaining) == (hold.amount, hold.remaining)
        return command, outcome.answer

    @rule(seconds=st.sampled_from([1, 20, 2_000]))
    def pass_time(self, seconds: int) -> None:
        if self.model.pass_time(seconds):
            self.run(tend(self.store))

    @rule(target=commands, player=any_players, frozen=st.booleans())
    def freeze(self, player: str, frozen: bool) -> Any:
        command = Freeze(self.new_id(), player, frozen, "because")
        outcome = self.outcome(self.store.freeze(command))
        reason = self.model.freeze(player, frozen)
        if isinstance(outcome, str) or reason:
            assert outcome == reason
            return multiple()
        assert self.run(self.store.player(player)) == outcome.answer
        return command, outcome.answer

    @rule(target=commands, before=st.one_of(st.none(), commands))
    def reverse(self, before: tuple[Any, Any] | None) -> Any:
        key = before[0].key if before and isinstance(before[0], Settle) else "no such settlement"
        if key in self.reversed:
            return multiple()
        command = Reverse(key, "because")
        outcome = self.outcome(self.store.reverse(command))
        reason = self.model.reverse(key)
        if isinstance(outcome, str) or reason:
            assert outcome == reason
            return multiple()
        self.reversed.add(key)
        return command, outcome.answer

    @rule(
        target=commands,
        player=st.one_of(players, any_players),
        unit=st.one_of(units, any_units),
        amount=st.one_of(amounts, any_amounts),
        write_off=st.booleans(),
    )
    def collect(self, player: str, unit: tuple[str, str], amount: int, write_off: bool) -> Any:
        # Most often what is owed, so that something is.
        owing = [money for money, owed in self.model.owed.items() if owed]
        if owing and amount % 4:
            player, *rest = owing[amount % len(owing)]
            unit = (rest[0], rest[1])
            amount = 1 + amount % self.model.owed[owing[amount % len(owing)]]
        command = Collect(self.new_id(), player, *unit, amount, "agreed", write_off=write_off)
        outcome = self.outcome(self.store.collect(command))
        money = (player, *unit)
        reason = self.model.collect(money, amount, write_off=write_off)
        if isinstance(outcome, str) or reason:
            assert outcome == reason
            return multiple()
        assert outcome.answer.owed == self.model.owed[money]
        assert outcome.answer.available == self.model.available[money]
        return command, outcome.answer

    # Most rules should settle: hypothesis chooses among rules alike.

    @rule(
        target=commands,
        order=st.permutations(PLAYERS),
        used=st.lists(holds, max_size=4, unique=True),
        payments=st.lists(transfers, min_size=1, max_size=8),
    )
    def settle(self, order: list[str], used: list[str], payments: list[Transfer]) -> Any:
        return self.settle_among_present(order, used, payments)

    @rule(
        target=commands,
        order=st.permutations(PLAYERS),
        used=st.lists(holds, min_size=2, max_size=4, unique=True),
        payments=st.lists(silver_transfers, min_size=1, max_size=4),
        fees=st.lists(
            st.builds(Fee, st.integers(0, 2), st.just("silver"), st.just(""), amounts), max_size=2
        ),
        hold_only=st.booleans(),
        caps=st.lists(st.builds(LossCap, st.just("silver"), st.just(""), amounts), max_size=2),
    )
    def settle_from_holds(
        self,
        order: list[str],
        used: list[str],
        payments: list[Transfer],
        fees: list[Fee],
        hold_only: bool,
        caps: list[LossCap],
    ) -> Any:
        return self.settle_among_present(order, used, payments, tuple(fees), hold_only, tuple(caps))

    @rule(
        target=commands,
        order=st.permutations(PLAYERS),
        payments=st.lists(silver_transfers, min_size=2, max_size=8),
        cap=st.none() | amounts,
    )
    def settle_silver(self, order: list[str], payments: list[Transfer], cap: int | None) -> Any:
        caps = () if cap is None else (LossCap("silver", "", cap),)
        return self.settle_among_present(order, [], payments, caps=caps)

    def settle_among_present(
        self,
        order: list[str],
        used: list[str],
        payments: list[Transfer],
        fees: tuple[Fee, ...] = (),
        hold_only: bool = False,
        caps: tuple[LossCap, ...] = (),
    ) -> Any:
        """A settlement with nothing wrong: of those who have wallets, with holds of their own."""
        present = [player for player in order if player in self.model.wallets]
        last = len(present) - 1
        parties = [
            Party(
                player,
                tuple(hold for hold in used if self.model.holds[hold].money[0] == player),
            )
            for player in present
        ]
        possible = tuple(
            one for one in payments if max(one.from_party or 0, one.to_party or 0) <= last
        )
        command = Settle(
            self.new_id(), tuple(parties), possible, fees=fees, hold_only=hold_only, caps=caps
        )
        return self.settled(command)

    @rule(
        target=commands,
        some=st.lists(any_players, min_size=1, max_size=4, unique=True),
        used=st.lists(holds, max_size=2, unique=True),
        payments=st.lists(any_transfers, max_size=3),
    )
    def settle_anyhow(self, some: list[str], used: list[str], payments: list[Transfer]) -> Any:
        parties = (Party(some[0], tuple(used)), *map(Party, some[1:]))
        return self.settled(Settle(self.new_id(), parties, tuple(payments)))

    def settled(self, command: Settle) -> Any:
        outcome = self.outcome(self.store.settle(command))
        reason = self.model.bad_settlement(command)
        if outcome == "BALANCE_OUT_OF_RANGE" and not reason:
            assert self.model.could_leave_the_range(command)
            return multiple()
        if isinstance(outcome, str) or reason:
            assert outcome == reason
            assert self.outcome(self.store.settlement(command.key)) == "UNKNOWN_SETTLEMENT"
            return multiple()
        assert not outcome.replayed
        settled = outcome.answer.outcome
        self.model.settled(command, settled.paid, settled.fees_paid)
        return command, outcome.answer

    @rule(before=commands)
    def repeat(self, before: tuple[Any, Any]) -> None:
        command, answer = before
        done = self.run(self.call(command))
        assert (done.answer, done.replayed) == (answer, True)

    @rule(before=consumes(commands), text=st.text(max_size=3))
    def reuse(self, before: tuple[Any, Any], text: str) -> None:
        command, _ = before
        reason = "REQUEST_ID_REUSED"
        match command:
            case Settle():
                other: Any = replace(command, labels={"club": text})
                reason = "SETTLEMENT_KEY_REUSED"
            case Reverse():
                other = replace(command, reason=text + "!")
                reason = "SETTLEMENT_REVERSED"
            case Freeze() | Collect():
                other = replace(command, reason=text + "!")
            case TopUpHold():
                other = replace(command, amount=command.amount + 1)
            case _:
                other = replace(command, memo=text + "!")
        assert self.outcome(self.call(other)) == reason

    def call(self, command: Any) -> Awaitable[Any]:
        match command:
            case Deposit():
                return self.store.deposit(command)
            case Withdraw():
                return self.store.withdraw(command)
            case TopUpHold():
                return self.store.top_up_hold(command)
            case Freeze():
                return self.store.freeze(command)
            case Collect():
                return self.store.collect(command)
            case Reverse():
                return self.store.reverse(command)
            case _:
                return self.store.settle(command)

    @rule()
    def restart(self) -> None:
        self.run(self.stack.aclose())
        self.store = self.run(self.stack.enter_async_context(self.opened()))

    @invariant()
    def everybody_has_what_the_model_says(self) -> None:
        for player in self.model.wallets:
            balances = {
                (balance.currency, balance.book): (balance.available, balance.held, balance.owed)
                for balance in self.run(self.store.balances(player))
            }
            held: dict[tuple[str, str], int] = {}
            for hold in self.model.holds.values():
                if hold.money[0] == player:
                    unit = hold.money[1:]
                    held[unit] = held.get(unit, 0) + hold.remaining
            assert balances == {
                money[1:]: (
                    self.model.available[money],
                    held.get(money[1:], 0),
                    self.model.owed[money],
                )
                for money, count in self.model.entries.items()
                if money[0] == player and count
            }

    def teardown(self) -> None:
        try:
            audit = self.run(self.store.audit())
            assert audit.findings == ()
            assert set(audit.sums.values()) <= {0}
            # What bots were given came from the house, and everybody else's from outside.
            sides: Counter[Money] = Counter()
            for one in self.run(self.store.stream(0, 1_000_000)):
                kind, _, *unit = one.account
                if kind in (Kind.HOUSE, Kind.EXTERNAL):
                    sides[HOUSE if kind is Kind.HOUSE else OUTSIDE, unit[0], unit[1]] += (
                        one.entry.amount
                    )
            for money in {money for money in self.model.available if money[0] in (HOUSE, OUTSIDE)}:
                assert sides[money] == self.model.available[money]
        finally:
            self.run(self.stack.aclose())
            self.loop.close()
            self.folder.cleanup()


@pytest.mark.timeout(600)  # a failure is made small before it is shown
@pytest.mark.parametrize("name", sorted(STORES))
def test_every_storage_does_as_the_model_does(name: str) -> None:
    machine = type(f"Ledger in {name}", (Ledger,), {"open_store": staticmethod(STORES[name])})
    # A database costs far more to make than a file.
    examples = 40 if name == "sqlite" else 10
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=40, deadline=None)
    )
