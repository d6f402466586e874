"""A channel whose credentials change: certificates are replaced while calls go on.

A connection cannot change its certificate, so that new credentials mean another one. It is made
beside the old one, which takes the calls until the new one stands; calls that go on on the old one
end there in their own time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import grpc.aio

Credentials = Callable[[], grpc.ChannelCredentials]
Bind = Callable[[grpc.aio.Channel], Any]
Make = Callable[[grpc.ChannelCredentials], grpc.aio.Channel]

_READY = grpc.ChannelConnectivity.READY


def renewing(credentials: Credentials, make: Make) -> grpc.aio.Channel:
    """A channel made anew whenever other credentials are given; they are asked for at each call."""
    return _Renewing(credentials, make)


class _Link:
    """A channel made with one set of credentials."""

    def __init__(self, credentials: grpc.ChannelCredentials, channel: grpc.aio.Channel) -> None:
        self.credentials = credentials
        self.channel = channel
        self.open = 0
        """Calls that go on."""
        self.is_left = False
        """Another one has taken its place."""


class _Renewing(grpc.aio.Channel):
    """A channel that asks for its credentials at every call, and follows when others are given."""

    def __init__(self, credentials: Credentials, make: Make) -> None:
        self._credentials = credentials
        self._make = make
        self._link = self._made(credentials())
        self._next: _Link | None = None
        self._left: set[_Link] = set()
        self._closing: set[asyncio.Task[None]] = set()

    def call(self, bind: Bind, bound: dict[_Link, Any], *request: Any, **more: Any) -> Any:
        """Make a call on the connection of now. ``bound``: what makes it, where known already."""
        link = self._current()
        make = bound.get(link)
        if make is None:
            bound.clear()
            make = bound[link] = bind(link.channel)
        made = make(*request, **more)
        link.open += 1
        made.add_done_callback(lambda _: self._done(link))
        return made

    def unary_unary(self, *arguments: Any, **more: Any) -> Any:
        return _Following(self, lambda channel: channel.unary_unary(*arguments, **more))

    def unary_stream(self, *arguments: Any, **more: Any) -> Any:
        return _Following(self, lambda channel: channel.unary_stream(*arguments, **more))

    def stream_unary(self, *arguments: Any, **more: Any) -> Any:
        return _Following(self, lambda channel: channel.stream_unary(*arguments, **more))

    def stream_stream(self, *arguments: Any, **more: Any) -> Any:
        return _Following(self, lambda channel: channel.stream_stream(*arguments, **more))

    async def __aenter__(self) -> _Renewing:
        return self

    async def __aexit__(self, *failure: Any) -> None:
        await self.close()

    async def close(self, grace: float | None = None) -> None:
        links = {self._link, *self._left, *([self._next] if self._next else [])}
        await asyncio.gather(*(link.channel.close(grace) for link in links), *self._closing)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        return self._current().channel.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        await self._current().channel.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        await self._current().channel.channel_ready()

    def _made(self, credentials: grpc.ChannelCredentials) -> _Link:
        return _Link(credentials, self._make(credentials))

    def _current(self) -> _Link:
        given = self._credentials()
        newest = self._next or self._link
        if given is not newest.credentials:
            if self._next is not None:
                self._leave(self._next)
            self._next = self._made(given)
        # Others may not trust a new certificate yet: a connection that stands is kept until another
        # does. Where none stands, the newest is the one to try.
        if self._next is not None and (
            self._next.channel.get_state(try_to_connect=True) is _READY
            or self._link.channel.get_state() is not _READY
        ):
            self._leave(self._link)
            self._link, self._next = self._next, None
        return self._link

    def _leave(self, link: _Link) -> None:
        link.is_left = True
        self._left.add(link)
        if not link.open:
            self._close(link)

    def _done(self, link: _Link) -> None:
        link.open -= 1
        if link.is_left and not link.open:
            self._close(link)

    def _close(self, link: _Link) -> None:
        self._left.discard(link)
        task = asyncio.get_running_loop().create_task(link.channel.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


class _Following:
    """One call of a service, made on the connection that its channel has by then."""

    def __init__(self, channel: _Renewing, bind: Bind) -> None:
        self._channel = channel
        self._bind = bind
        self._bound: dict[_Link, Any] = {}

    def __call__(self, *request: Any, **more: Any) -> Any:
        return self._channel.call(self._bind, self._bound, *request, **more)
