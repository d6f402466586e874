"""The wallet of the world: the small one of `tests.studio_wallet`, which knows nothing of ours.

Added to it are the balances that `WalletService` shows, players who are frozen, and faults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import Any

from fangcheng.wallet.v1 import settlement_pb2 as wire
from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from fangcheng_kit.errors import NotFound
from tests.matchmaking.faults import Faulty
from tests.studio_wallet import Code, Refused, StudioWallet, abort


class FakeWallet(Faulty, StudioWallet, wallet_pb2_grpc.WalletServiceServicer):
    """Balances and holds. Faults meet GetBalances, PlaceHolds and ReleaseHolds."""

    def __init__(self) -> None:
        Faulty.__init__(self)
        StudioWallet.__init__(self)
        self.silver = Silver(self)
        self.frozen: set[str] = set()

    @property
    def open_holds(self) -> dict[str, wire.Hold]:
        return {key: hold for key, hold in self.holds.items() if hold.state == wire.HOLD_STATE_OPEN}

    async def GetBalances(
        self, request: wallet_pb2.GetBalancesRequest, context: Any
    ) -> wallet_pb2.GetBalancesResponse:
        def do() -> wallet_pb2.GetBalancesResponse:
            if request.player_id not in self.silver:
                raise NotFound("UNKNOWN_WALLET", "no wallet", "player_id")
            silver = wallet_pb2.Balance(currency="silver", available=self.silver[request.player_id])
            return wallet_pb2.GetBalancesResponse(
                player_id=request.player_id,
                balances=[silver],
                player=wallet_pb2.PlayerState(frozen=request.player_id in self.frozen),
            )

        return await self.handle("GetBalances", do)

    async def PlaceHolds(self, request: wire.PlaceHoldsRequest, context: Any) -> Any:
        def do() -> Any:
            return self._once("PlaceHolds", request, self._place)

        return await self._refusing(context, "PlaceHolds", do)

    async def ReleaseHolds(self, request: wire.ReleaseHoldsRequest, context: Any) -> Any:
        return await self._refusing(context, "ReleaseHolds", lambda: self._release(request))

    def release(self, hold_ids: Iterable[str]) -> None:
        """As a table does at its end."""
        for hold_id in hold_ids:
            self._give_back(hold_id, wire.HOLD_STATE_RELEASED)

    async def _refusing(self, context: Any, name: str, do: Callable[[], Any]) -> Any:
        try:
            return await self.handle(name, do)
        except Refused as refused:
            await abort(context, refused)

    def _place(self, request: wire.PlaceHoldsRequest) -> wire.PlaceHoldsResponse:
        frozen = [
            (number, one.player_id)
            for number, one in enumerate(request.holds)
            if one.player_id in self.frozen
        ]
        if frozen:
            raise Refused(
                Code.FAILED_PRECONDITION,
                "PLAYER_FROZEN",
                f"holds[{frozen[0][0]}].player_id",
                player_ids=",".join(player for _, player in frozen),
            )
        return super()._place(request)


class Silver(MutableMapping[str, int]):
    """What each player has available; who is not in it has no wallet."""

    def __init__(self, wallet: StudioWallet) -> None:
        self._wallet = wallet

    def __getitem__(self, player_id: str) -> int:
        if player_id not in self._wallet.players:
            raise KeyError(player_id)
        return self._wallet.available(player_id)

    def __setitem__(self, player_id: str, silver: int) -> None:
        self._wallet.players.add(player_id)
        self._wallet.balances[player_id, "silver", ""] = silver

    def __delitem__(self, player_id: str) -> None:
        self._wallet.players.remove(player_id)

    def __iter__(self) -> Iterator[str]:
        return iter(self._wallet.players)

    def __len__(self) -> int:
        return len(self._wallet.players)
