"""Open wallets, as a studio's backend does when players register: ``register.py PLAYER...``.

Reads from the environment: FANGCHENG_OPERATOR_TOKEN, FANGCHENG_WALLET (127.0.0.1:7102).
"""

import asyncio
import os
import sys

import grpc

from fangcheng.wallet.v1 import wallet_pb2
from fangcheng.wallet.v1.wallet_pb2_grpc import WalletServiceStub
from fangcheng_client import connect, explain


async def main(players: list[str]) -> None:
    """Open them; a wallet that is open already stays as it is."""
    target = os.environ.get("FANGCHENG_WALLET", "127.0.0.1:7102")
    async with connect(target, os.environ["FANGCHENG_OPERATOR_TOKEN"]) as channel:
        wallets = WalletServiceStub(channel)
        for player in players:
            await wallets.OpenWallet(wallet_pb2.OpenWalletRequest(player_id=player))
            print(f"{player} has a wallet")


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1:]))
    except grpc.RpcError as error:
        sys.exit(str(explain(error)))
