"""Key sets: what they may hold, and how they are read anew."""

from __future__ import annotations

import asyncio
import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from fangcheng_kit import jwks
from fangcheng_kit.jwks import BadKeySet, KeySet, check_source, parse_key_set
from fangcheng_suite.certificates import Authority
from tests.kit.keys import Signer, key_set, publish, rsa_key

ONE = Signer("one")


def test_a_set_holds_keys_by_their_ids() -> None:
    rivest = Signer("two", "RS256")
    keys = parse_key_set(key_set(ONE.public(), rivest.public(kinds=["player"], use="sig")))
    assert {name: key.algorithm for name, key in keys.items()} == {"one": "EdDSA", "two": "RS256"}
    assert keys["one"].kinds == {"player", "operator", "service", "viewer"}
    assert keys["two"].kinds == {"player"}


def test_the_kind_of_a_key_says_its_algorithm_where_the_set_does_not() -> None:
    written = ONE.public()
    del written["alg"]
    assert parse_key_set(key_set(written))["one"].algorithm == "EdDSA"


def test_keys_for_something_else_are_left_out() -> None:
    encrypting = {"kid": "e", "kty": "RSA", "alg": "RSA-OAEP", "use": "enc"}
    assert list(parse_key_set(key_set(encrypting, ONE.public()))) == ["one"]
    with pytest.raises(BadKeySet, match="it holds no key that signs"):
        parse_key_set(key_set(encrypting))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "it is no JSON"),
        ("[" * 100_000, "it is no JSON"),
        ("[]", "it is no key set"),
        ('{"keys": {}}', "it is no key set"),
        (key_set(), "it holds no key that signs"),
        (key_set(*[ONE.public()] * 65), "it holds 65 keys; at most 64"),
        ('{"keys": [7]}', "key 1 is no object"),
        (key_set(ONE.public(kid="")), "key 1: kid must be a text of 1 to 128"),
        (key_set(ONE.public(kid=7)), "key 1: kid must be a text"),
        (key_set(ONE.public(), ONE.public()), "key 2: there is another one with the id 'one'"),
        (key_set({"kid": "s", "kty": "oct", "k": "c2VjcmV0"}), r"key 1 \('s'\) is secret"),
        (
            key_set({"kid": "p", **OKPAlgorithm.to_jwk(ONE.private, as_dict=True)}),
            r"key 1 \('p'\) is secret; a key set holds public keys only",
        ),
        (
            key_set({"kid": "p", **RSAAlgorithm.to_jwk(rsa_key(), as_dict=True)}),
            "is secret",
        ),
        (key_set(ONE.public(alg="RS256")), "not kty 'OKP' with alg 'RS256'"),
        (key_set(ONE.public(alg="HS256")), "not kty 'OKP' with alg 'HS256'"),
        (key_set(ONE.public(alg=[])), "not kty 'OKP' with alg"),
        (key_set(ONE.public(kty=[])), "not kty"),
        (
            key_set(
                {
                    "kid": "c",
                    **ECAlgorithm.to_jwk(
                        ec.generate_private_key(ec.SECP256R1()).public_key(), as_dict=True
                    ),
                }
            ),
            "not kty 'EC'",
        ),
        (key_set(ONE.public(x="!")), "cannot be read"),
        (key_set(ONE.public(x=7)), "cannot be read"),
        (key_set(ONE.public(crv="Ed448", x="A" * 76)), "its curve must be Ed25519"),
        (
            key_set(
                {
                    "kid": "r",
                    **RSAAlgorithm.to_jwk(rsa_key(bits=1_024).public_key(), as_dict=True),
                }
            ),
            "has 1024 bits; at least 2048 are needed",
        ),
        (key_set(ONE.public(kinds=[])), "kinds must be a list of some of operator, player"),
        (key_set(ONE.public(kinds=["admin"])), "kinds must be a list"),
        (key_set(ONE.public(kinds="player")), "kinds must be a list"),
        (key_set(ONE.public(kinds=[["player"]])), "kinds must be a list"),
    ],
)
def test_a_set_that_cannot_be_used_says_which_key_is_wrong(text: str, complaint: str) -> None:
    with pytest.raises(BadKeySet, match=complaint):
        parse_key_set(text)


@pytest.mark.parametrize(
    "source",
    ["http://keys.example/jwks.json", "https:///jwks", "https://a:b@c/", "https://h:99999"],
)
def test_keys_come_over_tls(source: str) -> None:
    with pytest.raises(ValueError, match=r"https|[Pp]ort"):
        check_source(source)


@pytest.mark.parametrize(
    "source", ["", "jwks.json", "/keys/jwks.json", "https://h/a?b", "http://127.0.0.1:80/x"]
)
def test_a_source_is_a_path_or_an_address(source: str) -> None:
    assert check_source(source) == source


# Read anew.


async def test_keys_come_and_go_with_the_file(tmp_path: Path) -> None:
    changes = []
    two = Signer("two")
    keys = KeySet(str(publish(tmp_path / "jwks.json", ONE.public())))
    keys.on_change = lambda: changes.append(sorted(keys.keys))
    await keys.read()
    await keys.read()
    publish(tmp_path / "jwks.json", ONE.public(), two.public())
    await keys.read()
    publish(tmp_path / "jwks.json", two.public())
    await keys.read()
    assert changes == [["one"], ["one", "two"], ["two"]]
    assert keys.generation == 3


async def test_a_set_that_cannot_be_read_leaves_the_keys_as_they_are(tmp_path: Path) -> None:
    path = publish(tmp_path / "jwks.json", ONE.public())
    keys = KeySet(str(path))
    await keys.read()
    for broken in ("", key_set(), key_set(ONE.public(alg="none"))):
        path.write_text(broken)
        with pytest.raises(BadKeySet):
            await keys.read()
        assert list(keys.keys) == ["one"]
    path.unlink()
    with pytest.raises(BadKeySet, match="it cannot be read: No such file"):
        await keys.read()
    assert (list(keys.keys), keys.generation) == (["one"], 1)


async def test_for_unknown_keys_a_set_is_read_anew_but_not_by_each_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = publish(tmp_path / "jwks.json", ONE.public())
    keys = KeySet(str(path))
    await keys.read()
    publish(path, ONE.public(), Signer("two").public())
    assert await keys.renew()
    publish(path, ONE.public(), Signer("three").public())
    assert not await keys.renew()
    assert sorted(keys.keys) == ["one", "two"]
    monkeypatch.setattr(jwks, "_AGAIN_SECONDS", 0.0)
    assert await keys.renew()
    assert sorted(keys.keys) == ["one", "three"]


async def test_nobody_waits_for_anothers_reading(tmp_path: Path) -> None:
    with served() as (address, answer):
        answer.body = key_set(ONE.public()).encode()
        answer.waits.clear()
        keys = KeySet(address)
        first = asyncio.create_task(keys.renew())
        await asyncio.to_thread(answer.asked.wait)
        assert not await keys.renew()
        answer.waits.set()
        assert await first


class _Keys(http.server.BaseHTTPRequestHandler):
    """Answers with the status and body that the test puts there."""

    status = 200
    body = b""
    asked: threading.Event
    waits: threading.Event

    def do_GET(self) -> None:
        self.asked.set()
        self.waits.wait()
        self.send_response(self.status)
        self.send_header("Location", "http://127.0.0.1:1/")
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def served(tls: ssl.SSLContext | None = None) -> Iterator[tuple[str, type[_Keys]]]:
    kind = type("Keys", (_Keys,), {"asked": threading.Event(), "waits": threading.Event()})
    kind.waits.set()
    server = http.server.HTTPServer(("127.0.0.1", 0), kind)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        scheme = "http" if tls is None else "https"
        yield f"{scheme}://localhost:{server.server_port}/jwks.json", kind
    finally:
        kind.waits.set()
        server.shutdown()
        thread.join()
        server.server_close()


async def test_keys_come_from_an_address() -> None:
    with served() as (address, answer):
        keys = KeySet(address)
        answer.body = key_set(ONE.public()).encode()
        await keys.read()
        assert list(keys.keys) == ["one"]
        answer.status = 302  # to wherever; it is not gone to
        with pytest.raises(BadKeySet, match="its server answers with status 302"):
            await keys.read()
        answer.status, answer.body = 200, json.dumps({"keys": ["x" * 300_000]}).encode()
        with pytest.raises(BadKeySet, match="it has more than 262144 bytes"):
            await keys.read()
        assert list(keys.keys) == ["one"]
    with pytest.raises(BadKeySet, match="it cannot be read: Connection refused"):
        await keys.read()


async def test_keys_come_over_tls_from_whom_a_trusted_authority_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, others = Authority.new(), Authority.new()
    issued = authority.issue("service/sign-in")
    own = tmp_path / "own.pem"
    own.write_bytes(issued.key + issued.certificate)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(own)
    trusted = tmp_path / "trusted.pem"
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    with served(tls) as (address, answer):
        keys = KeySet(address)
        answer.body = key_set(ONE.public()).encode()
        trusted.write_bytes(others.certificate)
        with pytest.raises(BadKeySet, match="CERTIFICATE_VERIFY_FAILED"):
            await keys.read()
        assert not keys.keys
        trusted.write_bytes(authority.certificate)
        await keys.read()
        assert list(keys.keys) == ["one"]
