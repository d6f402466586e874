"""Servers and callers with certificates: who gets in, and what happens when they change."""

from __future__ import annotations

import asyncio
import base64
import re
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
import structlog

from fangcheng_client import connect
from fangcheng_kit import Kit, Running, Settings, certificates
from fangcheng_kit.app import StartFailed
from fangcheng_kit.tokens import mint_token
from fangcheng_suite.certificates import Authority, Issued
from tests.kit.certified import Folder, credentials, replace
from tests.kit.echo import KEY, Echo, EchoRequest, Stub, serving_echo

TOKEN = mint_token(KEY, "operator")
OURS = Authority.new("ours")
OTHERS = Authority.new("another's")
TABLE = OURS.issue("service/table")
P256 = bytes.fromhex("06082a8648ce3d030107")  # its object identifier, in DER


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "LOOK_SECONDS", 0.01)


@pytest.fixture
def files(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.put(OURS.issue("service/echo"))
    folder.trust(OURS)
    return folder


async def asked(
    server: Running, trusted: Authority = OURS, shown: Issued | None = TABLE, **options: Any
) -> str:
    """What a new connection of a caller comes to."""
    async with connect(
        server.address,
        TOKEN,
        credentials=credentials(trusted, shown),
        timeout_seconds=60,
        options=[("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)],
        **options,
    ) as channel:
        try:
            return str((await Stub(channel).Unary(EchoRequest(text="a"))).text)
        except grpc.aio.AioRpcError as error:
            return error.code().name


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + 60
    while not await condition():
        assert time.monotonic() < deadline, "it did not come true"
        await asyncio.sleep(0.01)


def metric(server: Running, name: str) -> float:
    value = server.kit.registry.get_sample_value(name)
    assert value is not None
    return value


BAD = "fangcheng_certificate_files_bad"


async def test_only_who_shows_a_good_certificate_gets_in(files: Folder) -> None:
    async with serving_echo(**files.settings()) as server:
        assert await asked(server) == "a"
        assert await asked(server, shown=None) == "UNAVAILABLE"
        assert await asked(server, shown=OTHERS.issue("service/table")) == "UNAVAILABLE"
        assert await asked(server, shown=OURS.issue("service/table", days=-1)) == "UNAVAILABLE"
        assert await asked(server, trusted=OTHERS) == "UNAVAILABLE"
        async with connect(server.address, TOKEN, timeout_seconds=60) as plain:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await Stub(plain).Unary(EchoRequest(text="a"))
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_server_that_asks_for_no_certificate_takes_callers_without(files: Folder) -> None:
    settings = files.settings() | {"tls_client_ca": None}
    async with serving_echo(**settings) as server:
        assert await asked(server, shown=None) == "a"
        assert await asked(server, shown=OTHERS.issue("service/table")) == "a"


@pytest.mark.parametrize("given", [{"dev_key": KEY}, {"dev_key": "", "jwks": "keys.json"}])
async def test_calls_leave_the_host_by_tls_alone_with_a_token_or_without(
    files: Folder, given: dict[str, str]
) -> None:
    kit = Kit("table", Settings(**given, **files.settings() | {"tls_ca": None}))
    with pytest.raises(StartFailed, match=r"^evaluation\.example:7110: .* set TLS_CA"):
        kit.connect("evaluation.example:7110")
    await kit.connect("127.0.0.1:7110").close()
    kit = Kit("table", Settings(**given, **files.settings()))
    await kit.connect("evaluation.example:7110").close()


async def test_a_caller_asks_for_a_name_where_it_has_an_address(files: Folder) -> None:
    files.put(OURS.issue("service/echo", ["table"]))
    async with serving_echo(**files.settings()) as server:
        assert await asked(server) == "UNAVAILABLE"
        assert await asked(server, server_name="wallet") == "UNAVAILABLE"
        assert await asked(server, server_name="table") == "a"


async def test_a_certificate_that_changes_is_shown_to_new_connections(files: Folder) -> None:
    async with serving_echo(**files.settings()) as server:
        assert await asked(server) == "a"
        files.put(OTHERS.issue("service/echo"))

        async def is_new() -> bool:
            return await asked(server, trusted=OTHERS) == "a"

        await until(is_new)
        assert await asked(server) == "UNAVAILABLE"


async def test_an_authority_that_is_trusted_no_more_lets_nobody_in(files: Folder) -> None:
    theirs = OTHERS.issue("service/table")
    files.trust(OURS, OTHERS)
    async with serving_echo(**files.settings()) as server:
        assert await asked(server, shown=theirs) == "a"
        files.trust(OURS)

        async def is_out() -> bool:
            return await asked(server, shown=theirs) == "UNAVAILABLE"

        await until(is_out)
        assert await asked(server) == "a"


def test_connections_with_certificates_live_for_an_hour_where_nothing_else_is_said(
    files: Folder,
) -> None:
    assert Settings(dev_key=KEY).connection_age_seconds == 0
    assert Settings(dev_key=KEY, **files.settings()).connection_age_seconds == 3_600
    longer = Settings(dev_key=KEY, max_connection_age_seconds=7_200, **files.settings())
    assert longer.connection_age_seconds == 7_200


def expired(folder: Folder) -> None:
    folder.put(OURS.issue("service/echo", days=-1))


def over(folder: Folder) -> None:
    folder.trust(Authority.new(days=-1))


def of_another(folder: Folder) -> None:
    replace(folder.key, OURS.issue("service/echo").key)


def half(folder: Folder) -> None:
    replace(folder.certificate, folder.certificate.read_bytes()[:200])


def no_key(folder: Folder) -> None:
    replace(folder.key, b"secret")


def strange_key(folder: Folder) -> None:
    replace(folder.key, strange(folder.key.read_bytes()))


def strange_certificate(folder: Folder) -> None:
    replace(folder.certificate, strange(folder.certificate.read_bytes()))


def strange(pem: bytes) -> bytes:
    """The same of a curve that nobody knows, instead of P-256."""
    first, *lines, last = pem.splitlines()
    der = base64.b64decode(b"".join(lines)).replace(P256, P256[:-1] + b"\x77")
    return b"\n".join((first, base64.encodebytes(der).strip(), last, b""))


def gone(folder: Folder) -> None:
    folder.trusted.unlink()


FAULTS = [
    (expired, r"TLS_CERTIFICATE: \S+own\.pem has expired at \d{4}-\d\d-\d\d \d\d:\d\d UTC"),
    (over, r"TLS_CLIENT_CA: \S+ca\.pem has expired at"),
    (of_another, r"TLS_KEY: \S+own\.key is not the key of the certificate in \S+own\.pem"),
    (half, r"TLS_CERTIFICATE: \S+own\.pem holds no certificate in PEM"),
    (no_key, r"TLS_KEY: \S+own\.key holds no private key in PEM without a password"),
    (strange_key, r"TLS_KEY: \S+own\.key holds no private key in PEM .*, of a kind that is known"),
    (strange_certificate, r"TLS_CERTIFICATE: \S+own\.pem is for a key of a kind that is not known"),
    (gone, r"TLS_CLIENT_CA: cannot read \S+ca\.pem: No such file or directory"),
]


@pytest.mark.parametrize(("spoil", "problem"), FAULTS)
async def test_files_that_cannot_be_used_end_the_start(
    files: Folder, spoil: Callable[[Folder], None], problem: str
) -> None:
    spoil(files)
    with pytest.raises(StartFailed, match=f"^{problem}"):
        async with serving_echo(**files.settings()):
            pass


@pytest.mark.parametrize(("spoil", "problem"), FAULTS)
async def test_files_that_become_bad_leave_the_earlier_ones_in_force(
    files: Folder, spoil: Callable[[Folder], None], problem: str
) -> None:
    good = files.key.read_bytes(), files.certificate.read_bytes()
    with structlog.testing.capture_logs() as logged:
        async with serving_echo(**files.settings()) as server:
            assert metric(server, BAD) == 0
            spoil(files)

            async def is_noticed() -> bool:
                return metric(server, BAD) == 1

            await until(is_noticed)
            assert await asked(server) == "a"
            files.trust(OURS)
            files.put(Issued(good[1], good[0]))

            async def is_good() -> bool:
                return metric(server, BAD) == 0

            await until(is_good)
            assert await asked(server) == "a"
    warnings = [line["problem"] for line in logged if line["log_level"] == "warning"]
    assert len([told for told in warnings if re.match(problem, told)]) == 1
    assert "secret" not in str(logged)


async def test_a_certificate_whose_time_comes_is_used_from_then_on(
    files: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock(datetime):
        days = 0

        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(days=cls.days)

    async with serving_echo(**files.settings()) as server:
        # By this host's clock it is ten days ago.
        monkeypatch.setattr(certificates, "datetime", Clock)
        Clock.days = -10
        files.put(OTHERS.issue("service/echo"))

        async def is_noticed() -> bool:
            return metric(server, BAD) == 1

        await until(is_noticed)
        assert await asked(server) == "a"
        Clock.days = 0

        async def is_used() -> bool:
            return await asked(server, trusted=OTHERS) == "a"

        await until(is_used)


class Seen(Echo):
    """Notes whose certificates it was shown, and over which connections."""

    def __init__(self) -> None:
        super().__init__()
        self.certificates: list[bytes] = []
        self.peers: list[str] = []

    async def Unary(self, request: Any, context: Any) -> Any:
        self.certificates += context.auth_context()["x509_pem_cert"]
        self.peers.append(context.peer())
        return await super().Unary(request, context)


class Given:
    """Credentials that change."""

    def __init__(self, shown: Issued) -> None:
        self.now = credentials(OURS, shown)

    def __call__(self) -> grpc.ChannelCredentials:
        return self.now


async def test_calls_move_to_a_connection_with_the_new_certificate_and_streams_end_on_the_old(
    files: Folder,
) -> None:
    echo = Seen()
    given = Given(TABLE)
    async with (
        serving_echo(echo, **files.settings()) as server,
        connect(server.address, TOKEN, credentials=given) as channel,
    ):
        stub = Stub(channel)
        stream = stub.Chat()
        await stream.write(EchoRequest(text="1"))
        assert (await stream.read()).text == "1"
        for _ in range(3):
            await stub.Unary(EchoRequest(text="a"))
        assert len(set(echo.peers)) == 1

        newer = OURS.issue("service/table")
        given.now = credentials(OURS, newer)

        async def is_shown() -> bool:
            await stub.Unary(EchoRequest(text="a"))
            return echo.certificates[-1] == newer.certificate

        await until(is_shown)
        assert set(echo.certificates) == {TABLE.certificate, newer.certificate}
        assert len(set(echo.peers)) == 2
        await stream.write(EchoRequest(text="2"))
        assert (await stream.read()).text == "2"
        await stream.done_writing()
        assert await stream.read() is grpc.aio.EOF
        await stub.Unary(EchoRequest(text="a"))
        assert echo.certificates[-1] == newer.certificate


async def test_a_certificate_that_is_not_trusted_yet_waits_beside_the_one_in_use(
    files: Folder,
) -> None:
    echo = Seen()
    given = Given(TABLE)
    async with (
        serving_echo(echo, **files.settings()) as server,
        connect(server.address, TOKEN, credentials=given) as channel,
    ):
        stub = Stub(channel)
        await stub.Unary(EchoRequest(text="a"))
        theirs = OTHERS.issue("service/table")
        given.now = credentials(OURS, theirs)
        for _ in range(50):
            await stub.Unary(EchoRequest(text="a"))
        files.trust(OURS, OTHERS)

        async def is_shown() -> bool:
            await stub.Unary(EchoRequest(text="a"))
            return echo.certificates[-1] == theirs.certificate

        await until(is_shown)


async def test_a_channel_that_never_called_takes_the_newest_certificate(files: Folder) -> None:
    echo = Seen()
    given = Given(OTHERS.issue("service/table"))
    async with (
        serving_echo(echo, **files.settings()) as server,
        connect(server.address, TOKEN, credentials=given) as channel,
    ):
        given.now = credentials(OURS, TABLE)
        await Stub(channel).Unary(EchoRequest(text="a"))
        assert echo.certificates == [TABLE.certificate]
        await channel.channel_ready()
        assert channel.get_state() is grpc.ChannelConnectivity.READY


async def test_a_service_shows_its_newest_certificate_to_those_it_calls(files: Folder) -> None:
    echo = Seen()
    async with (
        serving_echo(echo, **files.settings()) as called,
        serving_echo(first := Echo(), **files.settings()) as server,
        connect(server.address, TOKEN, credentials=credentials(OURS, TABLE)) as channel,
    ):
        first.passed_on = server.kit.connect(called.address)
        stub = Stub(channel)
        assert (await stub.Unary(EchoRequest(text="pass on"))).caller == "service:echo"
        newer = OURS.issue("service/echo")
        files.put(newer)

        async def is_shown() -> bool:
            await stub.Unary(EchoRequest(text="pass on"))
            return echo.certificates[-1] == newer.certificate

        await until(is_shown)
