"""A name server for one name, as much of RFC 1035 as a resolver needs to find replicas."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import struct
from collections.abc import AsyncIterator
from typing import cast

_HEADER = struct.Struct("!6H")
_QUESTION_END = struct.Struct("!HH")
_ANSWER = struct.Struct("!HHHIH4s")

_ADDRESS, _INTERNET = 1, 1
_ANSWERED = 0x8580  # an answer, with authority, recursion as asked
_NO_SUCH_NAME = 3
_POINTER_TO_THE_NAME = 0xC00C


class NameServer(asyncio.DatagramProtocol):
    """Answers the addresses that it holds now; they are good for a second."""

    def __init__(self, name: str) -> None:
        self.addresses: list[str] = []
        self._name = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
        self._transport: asyncio.DatagramTransport | None = None

    @property
    def authority(self) -> str:
        """Where it listens."""
        assert self._transport is not None
        host, port = self._transport.get_extra_info("sockname")
        return f"{host}:{port}"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        assert self._transport is not None
        self._transport.sendto(self.answer(data), addr)

    def answer(self, query: bytes) -> bytes:
        """The answer to a query with one question."""
        number, *_ = _HEADER.unpack_from(query)
        name_end = query.index(0, _HEADER.size)
        name = query[_HEADER.size : name_end]
        kind, _ = _QUESTION_END.unpack_from(query, name_end + 1)
        question = query[_HEADER.size : name_end + 1 + _QUESTION_END.size]
        known = name.lower() == self._name
        answers = [
            _ANSWER.pack(
                _POINTER_TO_THE_NAME, _ADDRESS, _INTERNET, 1, 4, ipaddress.IPv4Address(one).packed
            )
            for one in self.addresses
            if known and kind == _ADDRESS
        ]
        status = _ANSWERED if known else _ANSWERED | _NO_SUCH_NAME
        header = _HEADER.pack(number, status, 1, len(answers), 0, 0)
        return b"".join([header, question, *answers])


@contextlib.asynccontextmanager
async def name_server(name: str) -> AsyncIterator[NameServer]:
    """Serve a name on loopback until the end of the block."""
    transport, server = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: NameServer(name), local_addr=("127.0.0.1", 0)
    )
    try:
        yield server
    finally:
        transport.close()
