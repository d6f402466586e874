"""The currencies' names and digits, for amounts in words."""

from __future__ import annotations

from typing import Any

import grpc.aio

from fangcheng.wallet.v1 import wallet_pb2

from .backend import Backend


async def currencies_of(backend: Backend) -> list[dict[str, Any]]:
    """Id, names by language and `minor_digits` of each; none where nobody tells."""
    request = wallet_pb2.ListCurrenciesRequest()
    try:
        found = await backend.wallet.ListCurrencies(request, timeout=3.0)
    except grpc.aio.AioRpcError:
        return []
    return [
        {"currency": one.currency, "names": dict(one.names), "minor_digits": one.minor_digits}
        for one in found.currencies
    ]
