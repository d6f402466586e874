"""The services behind the console."""

from __future__ import annotations

from collections.abc import Sequence

import grpc.aio

from fangcheng.evaluation.v1.evaluation_pb2_grpc import EvaluationServiceStub
from fangcheng.matchmaking.v1.matchmaking_pb2_grpc import MatchmakingServiceStub
from fangcheng.matchmaking.v1.operations_pb2_grpc import MatchmakingOperationsServiceStub
from fangcheng.matchmaking.v1.rooms_pb2_grpc import RoomServiceStub
from fangcheng.table.v1.operators_pb2_grpc import TableOperationsServiceStub
from fangcheng.table.v1.records_pb2_grpc import TableRecordServiceStub
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng.wallet.v1.settlement_pb2_grpc import SettlementServiceStub
from fangcheng.wallet.v1.wallet_pb2_grpc import WalletServiceStub
from fangcheng_kit import Kit
from fangcheng_kit.principal import mint_token

from .session import Person
from .settings import ConsoleSettings

SERVICES = ("matchmaking", "table", "wallet", "evaluation")
_OPERATORS_TOKEN_SECONDS = 60.0
"""For one call that begins now; a stream goes on beyond it."""


class Stubs:
    """The calls of all services, on one channel to each."""

    def __init__(self, kit: Kit, settings: ConsoleSettings, *, own_token: bool) -> None:
        self.channels: dict[str, grpc.aio.Channel] = {
            service: kit.connect(getattr(settings, service), own_token=own_token)
            for service in SERVICES
        }
        """By service."""
        table, wallet = self.channels["table"], self.channels["wallet"]
        matchmaking = self.channels["matchmaking"]
        self.tables = TableServiceStub(table)
        self.records = TableRecordServiceStub(table)
        self.operations = TableOperationsServiceStub(table)
        self.wallet = WalletServiceStub(wallet)
        self.settlements = SettlementServiceStub(wallet)
        self.matchmaking = MatchmakingServiceStub(matchmaking)
        self.rooms = RoomServiceStub(matchmaking)
        self.queue_operations = MatchmakingOperationsServiceStub(matchmaking)
        self.evaluation = EvaluationServiceStub(self.channels["evaluation"])


class Backend(Stubs):
    """The services, called as `service:console`: for what everybody who has signed in may see."""

    def __init__(self, kit: Kit, settings: ConsoleSettings) -> None:
        super().__init__(kit, settings, own_token=True)
        self.operators = Stubs(kit, settings, own_token=False)
        """The same services for calls that need an operator; each call takes `as_operator`."""
        self._key = settings.dev_key

    def as_operator(self, person: Person) -> Sequence[tuple[str, str]]:
        """Metadata of a call on `operators`, which then is that of this operator.

        The services' logs name the person. `PermissionError` for one who is no operator: a handler
        has let through whom it must not.
        """
        if person.role != "operator":
            raise PermissionError(f"{person.subject} is no operator")
        token = mint_token(self._key, person.subject, ttl_seconds=_OPERATORS_TOKEN_SECONDS)
        return (("authorization", f"Bearer {token}"),)
