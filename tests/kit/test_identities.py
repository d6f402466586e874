"""Whose call it is, at a service that serves."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from fangcheng_client import connect, explain
from fangcheng_kit import Running, StartFailed, calls
from fangcheng_kit.errors import ServiceError
from fangcheng_kit.identities import CALLER_KEY, Identities, passed_on
from fangcheng_kit.principal import Principal
from fangcheng_kit.tokens import TokenVerifier, mint_token
from tests.kit.conftest import Eventually
from tests.kit.echo import KEY, Echo, EchoRequest, Stub, connected, serving_echo
from tests.kit.keys import Signer, publish


def identified(
    service: str, *metadata: tuple[str, str | bytes], subject: str = "service:table"
) -> Principal:
    """The caller of a call with this metadata, at a service, that `subject` makes."""
    bearer = ("authorization", f"Bearer {mint_token(KEY, subject, ['act_as'])}")
    identities = Identities(service, TokenVerifier(KEY))
    return identities.of([bearer, *metadata], _Nobody()).principal


class _Nobody:
    def auth_context(self) -> dict[str, Any]:
        return {}


def reason(service: str, *metadata: tuple[str, str | bytes], subject: str) -> str:
    with pytest.raises(ServiceError) as caught:
        identified(service, *metadata, subject=subject)
    return caught.value.reason


@pytest.mark.parametrize("player", ["", "x" * 129, "a\0b"])
def test_acting_for_nobody_is_refused(player: str) -> None:
    acting = ("fangcheng-act-as", player)
    assert reason("table", acting, subject="service:gateway") == "INVALID_ACT_AS"


@pytest.mark.parametrize("subject", ["player:ming", "viewer:wang"])
def test_the_scope_is_of_no_use_to_players_and_viewers(subject: str) -> None:
    acting = ("fangcheng-act-as", "mei")
    assert reason("table", acting, subject=subject) == "ACT_AS_NOT_ALLOWED"


# Passed on.

MING = Principal("player", "ming", frozenset({"bot"}), "service:gateway", time.time() + 60)
MEI = Principal("operator", "mei")


def test_replicas_of_the_table_service_pass_any_caller_on() -> None:
    for caller in (MING, MEI, Principal("operator", ""), Principal("service", "gateway")):
        assert identified("table", passed_on(caller)) == caller
    assert identified("table", passed_on(MING)).expires == MING.expires


def test_whom_somebody_passes_on_is_known_no_longer_than_who_passes_on() -> None:
    assert time.time() < identified("table", passed_on(MEI)).expires < time.time() + 3_601


def test_the_console_passes_operators_on_to_any_service() -> None:
    for service in ("table", "wallet", "matchmaking"):
        for caller in (MEI, Principal("operator", "")):
            assert identified(service, passed_on(caller), subject="service:console") == caller


@pytest.mark.parametrize(
    ("service", "subject", "caller"),
    [
        ("wallet", "service:table", MING),
        ("matchmaking", "service:table", MEI),
        ("table", "service:console", MING),
        ("table", "service:console", Principal("service", "matchmaking")),
        ("table", "service:console", Principal("operator", "mei", frozenset({"act_as"}))),
        ("table", "service:matchmaking", MING),
        ("table", "service:gateway", MEI),
        ("console", "service:console", Principal("viewer", "wang")),
        ("table", "operator:mei", MEI),
        ("table", "operator:table", MING),
        ("table", "player:table", MING),
        ("table", "viewer:console", MEI),
    ],
)
def test_nobody_else_passes_anybody_on(service: str, subject: str, caller: Principal) -> None:
    assert reason(service, passed_on(caller), subject=subject) == "CALLER_NOT_ALLOWED"


@pytest.mark.parametrize(
    "told",
    [
        *(b"", b"\xff", b"7", b"[]", b"{}", b"[" * 100_000),
        *(b'{"sub": 7}', b'{"sub": "admin"}', b'{"sub": "player:"}'),
        *(b'{"sub": "operator", "scopes": 7}', b'{"sub": "operator", "exp": "soon"}'),
        *(b'{"sub": "operator", "exp": NaN}', b'{"sub": "operator", "exp": 1' + b"0" * 400 + b"}"),
    ],
    ids=lambda told: str(told[:40]),
)
def test_a_caller_that_cannot_be_read_is_refused(told: bytes) -> None:
    assert reason("table", (CALLER_KEY, told), subject="service:table") == "INVALID_CALLER"


def test_who_acts_for_a_player_passes_nobody_on() -> None:
    """The player for whom a gateway acts is no service, however it is called."""
    acting = ("fangcheng-act-as", "table")
    assert reason("table", passed_on(MING), acting, subject="service:gateway") == (
        "CALLER_NOT_ALLOWED"
    )


# Streams end with what opened them.


async def ended(stream: Any) -> Any:
    """Why a stream has ended, once it has said what it was told."""
    try:
        while await stream.read() is not grpc.aio.EOF:
            pass
    except grpc.aio.AioRpcError as error:
        return explain(error)
    raise AssertionError("it has ended without an error")


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the clock forward; who waits for it looks often."""
    monkeypatch.setattr(calls, "_LONGEST_WAIT_SECONDS", 0.01)
    true, ahead = time.time, 0.0
    monkeypatch.setattr(time, "time", lambda: true() + ahead)

    def set_forward(seconds: float) -> None:
        nonlocal ahead
        ahead = seconds

    return set_forward


async def test_a_stream_ends_with_its_token(
    echo: Echo, running: Running, later: Callable[[float], None]
) -> None:
    async with connect(running.address, mint_token(KEY, "operator", ttl_seconds=60)) as channel:
        stub = Stub(channel)
        stream = stub.Split(EchoRequest(text="ab", tags=["hang"]))
        assert (await stream.read()).text == "a"
        later(71)  # the leeway counts, too
        why = await ended(stream)
        assert (why.code, why.reason) == (grpc.StatusCode.UNAUTHENTICATED, "TOKEN_EXPIRED")
        assert (why.passes, echo.cleaned.is_set()) == (True, True)
        # The same token does not open another one; that is for good.
        again = await ended(stub.Split(EchoRequest(text="ab")))
        assert (again.reason, again.passes) == ("TOKEN_EXPIRED", False)


async def test_a_stream_of_both_sides_ends_with_its_token(
    echo: Echo, running: Running, later: Callable[[float], None]
) -> None:
    async with connected(running) as channel:
        chat = Stub(channel).Chat()
        await chat.write(EchoRequest(text="a"))
        assert (await chat.read()).text == "a"
        later(3_600 + 11)
        assert (await ended(chat)).reason == "TOKEN_EXPIRED"
        assert echo.cleaned.is_set()


async def test_keys_are_rotated_while_the_service_runs(
    tmp_path: Path, echo: Echo, eventually: Eventually
) -> None:
    """Publish the new key, sign with it, withdraw the old one: nothing is restarted."""
    old, new = Signer("old"), Signer("new", "RS256")
    path = publish(tmp_path / "jwks.json", old.public())
    async with serving_echo(echo, dev_key="", jwks=str(path)) as running:

        async def caller(signer: Signer, token: str = "") -> str:
            token = token or signer.token("player:ming")
            async with connect(running.address, token) as channel:
                return str((await Stub(channel).Unary(EchoRequest(text="a"))).caller)

        assert await caller(old) == "player:ming"
        publish(path, old.public(), new.public())
        assert await caller(new) == "player:ming"  # it is found for the first token it signs
        known = old.token("player:ming")
        async with connect(running.address, known) as channel:
            stream = Stub(channel).Split(EchoRequest(text="a", tags=["hang"]))
            assert (await stream.read()).text == "a"
            publish(path, new.public())
            why = await ended(stream)
        assert why.reason == "TOKEN_INVALID"
        for token in ("", known):  # one that was checked while its key was good is not, either
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await caller(old, token)
            assert explain(caught.value).reason == "TOKEN_INVALID"
        assert await caller(new) == "player:ming"
        path.write_text("no set")
        await eventually(lambda: value(running, "fangcheng_key_set_failures_total") > 0)
        assert await caller(new) == "player:ming"
        assert value(running, "fangcheng_key_set_keys") == 1


def value(running: Running, name: str) -> float:
    found = running.kit.registry.get_sample_value(name)
    assert found is not None
    return found


async def test_a_service_without_a_development_key_shows_the_token_of_its_file(
    tmp_path: Path,
) -> None:
    signer = Signer("one")
    path = publish(tmp_path / "jwks.json", signer.public())
    (tmp_path / "token").write_text(signer.token("service:echo"))
    settings = {"dev_key": "", "jwks": str(path), "token_file": tmp_path / "token"}
    async with serving_echo(**settings) as running:
        stub = Stub(running.kit.connect(running.address))
        assert (await stub.Unary(EchoRequest(text="a"))).caller == "service:echo"
    async with serving_echo(dev_key="", jwks=str(path)) as running:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await Stub(running.kit.connect(running.address)).Unary(EchoRequest(text="a"))
        assert explain(caught.value).reason == "TOKEN_MISSING"


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"jwks": "none.json"}, r"the key set none.json \(FANGCHENG_JWKS\): it cannot be read"),
        ({"token_file": Path("none")}, r"none \(FANGCHENG_TOKEN_FILE\): it cannot be read"),
    ],
)
async def test_what_is_wrong_with_keys_ends_the_start(
    settings: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(StartFailed, match=complaint):
        async with serving_echo(**settings):
            pass


async def test_the_log_says_what_is_wrong_with_a_token_and_never_the_token(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = Signer("stranger").token("operator")
    path = publish(tmp_path / "jwks.json", Signer("one").public())
    async with serving_echo(jwks=str(path)) as running:
        async with connect(running.address, token) as channel:
            with pytest.raises(grpc.aio.AioRpcError):
                await Stub(channel).Unary(EchoRequest(text="a"))
        async with connected(running) as channel:
            await Stub(channel).Unary(EchoRequest(text="a"))
    logged = capsys.readouterr().out
    assert "the key set has no key 'stranger'" in logged
    assert token not in logged
