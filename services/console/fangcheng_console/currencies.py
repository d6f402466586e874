"""The currencies' names and digits, for amounts in words."""

from __future__ import annotations

from typing import Any

import grpc.aio

from fangcheng.wallet.v1 import wallet_pb2

from .backend import Backend


async def currencies_of(backend: Backend) -> dict[str, Any]:
    """By currency id: `names` by language, `digits` after the point; none where nobody tells."""
    try:
        found = await backend.wallet.ListCurrencies(wallet_pb2.ListCurrenciesRequest(), timeout=3.0)
    except grpc.aio.AioRpcError:
        return {}
    return {
        one.currency: {"names": dict(one.names), "digits": one.minor_digits}
        for one in found.currencies
    }
