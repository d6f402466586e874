"""Sends hostile calls to a suite and looks at what must hold after each."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

import grpc
import grpc.aio

from fangcheng.table.v1 import state_pb2, table_pb2
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng.wallet.v1 import wallet_pb2
from fangcheng.wallet.v1.wallet_pb2_grpc import WalletServiceStub
from fangcheng_client import connect
from fangcheng_kit.tokens import mint_token
from tests.fuzz.calls import Input, Outcome, answer_of, sent
from tests.fuzz.suite import Suite, stub
from tests.system.processes import KEY

NEVER = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DATA_LOSS}
_OF_THE_CLIENT = {grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED}
_QUIET_SECONDS = 0.015
_GLANCE_SECONDS = 0.02
_REPEATS = 3
MOST_GROWTH_BYTES = 96 * 2**20
"""Of a process, from the first third of the inputs to the last."""


class Attack:
    """What is sent, and what is seen of the suite."""

    def __init__(self, suite: Suite, stack: AsyncExitStack) -> None:
        self._suite = suite
        self._stack = stack
        # Channels without a token: each call has its own, or none.
        self._channels = {
            name: grpc.aio.insecure_channel(service.address, [("grpc.enable_retries", 0)])
            for name, service in suite.services.items()
        }
        for channel in self._channels.values():
            stack.push_async_callback(channel.close)
        self._versions: tuple[int, ...] = ()
        self._state: dict[str, Any] = {}
        self._bytes: dict[str, int] = {}
        self.codes: Counter[str] = Counter()
        self.unexplained: list[str] = []
        """Changes that came with a refusal and did not come with its repeats: something else's."""

    async def one(self, number: int, given: Input) -> None:
        """One call by itself. What is refused, or only reads, leaves the stores as they were."""
        outcome = await self._judged(number, given)
        if given.method.changes and _may_have_changed(given, outcome):
            await self.settled()
            return
        if self._suite.versions() == self._versions:
            return
        if (seen := self._changed()) and await self._changes_again(given):
            raise AssertionError(
                f"input {number}: {outcome.code.name}, but it changes {[*seen]}: {given}"
            )
        if seen:
            self.unexplained.append(
                f"input {number} {given.method.path} {outcome.code.name}: {[*seen]}"
            )
        await self.settled()

    async def at_once(self, number: int, inputs: Sequence[Input]) -> None:
        """Many calls at the same time."""
        await asyncio.gather(*(self._judged(number, given) for given in inputs))

    async def raw(self, service: str, data: bytes) -> None:
        """Bytes that are no gRPC at all, or only begin as it does, on a connection of their own."""
        host, _, port = self._suite.services[service].address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(data)
            await writer.drain()
            await asyncio.wait_for(reader.read(), _GLANCE_SECONDS)
        except (TimeoutError, ConnectionError):
            pass  # kept open, or shut: as the server likes
        finally:
            writer.close()
        assert self._suite.services[service].alive, data

    async def flood(self, table_id: str) -> None:
        """A gateway adds seats and acts for them as fast as it can, and reads no answer.

        Others are answered meanwhile; the table service takes no more than it has room for.
        """
        token = mint_token(KEY, "service:gateway", ["act_as"])
        channel = connect(self._suite.services["table"].address, token)
        self._stack.push_async_callback(channel.close)
        stream = TableServiceStub(channel).AttendMany()

        act = table_pb2.ActRequest(
            table_id=table_id, decision_id="7", action=state_pb2.Action(kind="pass")
        )
        written = 0

        async def write() -> None:
            nonlocal written
            while True:
                name = f"nobody-{written % 500}"
                add = table_pb2.AddSeat(player_id=name, table_id=table_id)
                answer = table_pb2.SeatAct(player_id=name, act=act)
                await stream.write(
                    table_pb2.AttendManyRequest(act=answer)
                    if written % 3
                    else table_pb2.AttendManyRequest(add=add)
                )
                written += 1

        writing = asyncio.create_task(write())
        operator = stub(self._stack, self._suite, TableServiceStub, "table", "operator")
        for _ in range(100):
            found = await operator.GetTable(table_pb2.GetTableRequest(table_id=table_id))
            assert found.table.table_id == table_id
        writing.cancel()
        await asyncio.wait([writing])
        stream.cancel()
        assert written
        self.codes["flood"] = written
        assert self._suite.services["table"].alive

    async def settled(self) -> None:
        """Wait until nothing is written any more, and remember what the stores have."""
        while True:
            state = self._suite.state()
            await asyncio.sleep(_QUIET_SECONDS)
            self._versions = self._suite.versions()
            self._state = self._suite.state()
            if state == self._state:
                return

    async def _judged(self, number: int, given: Input) -> Outcome:
        outcome = await sent(self._channels[given.method.service], given)
        self.codes[outcome.code.name] += 1
        what = f"input {number}: {outcome.code.name} {outcome.details!r}: {given}"
        assert outcome.code not in NEVER, what
        if not given.timeout_seconds and not given.method.gives_stream:
            assert outcome.code is not grpc.StatusCode.DEADLINE_EXCEEDED, f"no answer, {what}"
        assert self._suite.services[given.method.service].alive, what
        if outcome.code is grpc.StatusCode.OK:
            for data in outcome.answers:
                self._suite.learn(answer_of(given, data))
        elif outcome.code not in _OF_THE_CLIENT:
            assert outcome.details, what
        return outcome

    def _changed(self) -> dict[str, Any]:
        now = self._suite.state()
        return {query: now[query] for query in now if now[query] != self._state[query]}

    async def _changes_again(self, given: Input) -> bool:
        for _ in range(_REPEATS):
            await self.settled()
            await sent(self._channels[given.method.service], given)
            if not self._changed():
                return False
        return True

    def weigh(self) -> None:
        """Remember how large the processes are, now that they are warm."""
        self._bytes = {name: service.memory() for name, service in self._suite.services.items()}

    def growth(self) -> dict[str, int]:
        """Bytes that each process has grown by since it was weighed."""
        return {
            name: service.memory() - self._bytes[name]
            for name, service in self._suite.services.items()
        }

    async def audited(self) -> None:
        """The ledger is whole."""
        async with AsyncExitStack() as stack:
            wallet = stub(stack, self._suite, WalletServiceStub, "wallet", "operator")
            audit = await wallet.AuditLedger(wallet_pb2.AuditLedgerRequest())
            assert audit.balanced, audit
            chain = await wallet.VerifyLedger(wallet_pb2.VerifyLedgerRequest())
            assert chain.intact, chain

    async def started_again(self) -> None:
        """Nothing that a call has left behind keeps a service from starting from its store."""
        before = await self._tables()
        for service in self._suite.services.values():
            await service.kill()
        await asyncio.gather(*(service.start() for service in self._suite.services.values()))
        assert await self._tables() == before

    async def _tables(self) -> list[object]:
        """Of the newest tables, what does not change while they are played."""
        found: list[object] = []
        async with self._suite.channel("table", "operator") as channel:
            tables = TableServiceStub(channel)
            for table_id in self._suite.known["table_id"]:
                asked = table_pb2.GetTableRequest(table_id=table_id)
                try:
                    table = (await tables.GetTable(asked)).table
                except grpc.aio.AioRpcError as error:
                    found.append(error.code())
                else:
                    parts = table.created, table.rules, *table.stakes
                    told = [part.SerializeToString(deterministic=True) for part in parts]
                    found.append((table.commitment, sorted(table.labels.items()), told))
        return found


def _may_have_changed(given: Input, outcome: Outcome) -> bool:
    """Whether a call that can change something may have done so."""
    return outcome.code is grpc.StatusCode.OK or outcome.code in _OF_THE_CLIENT
