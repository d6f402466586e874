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
from fangcheng_kit.identities import passed_on
from fangcheng_kit.principal import Principal

from .session import Person
from .settings import ConsoleSettings

SERVICES = ("matchmaking", "table", "wallet", "evaluation")


class Backend:
    """The calls of all services, on one channel to each.

    They are those of `service:console`, for what everybody who has signed in may see; with the
    metadata of `as_operator` they are an operator's.
    """

    def __init__(self, kit: Kit, settings: ConsoleSettings) -> None:
        self.channels: dict[str, grpc.aio.Channel] = {
            service: kit.connect(getattr(settings, service)) for service in SERVICES
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

    def as_operator(self, person: Person) -> Sequence[tuple[str, bytes]]:
        """Metadata of a call that needs an operator: for whom the console, which has verified who
        it is, makes it.

        The services' logs name the person. `PermissionError` for one who is no operator: a handler
        has let through whom it must not.
        """
        if person.role != "operator":
            raise PermissionError(f"{person.subject} is no operator")
        return (passed_on(Principal("operator", person.name)),)
