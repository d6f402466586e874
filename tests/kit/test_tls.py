"""Certificates: whom they name."""

from __future__ import annotations

import pytest

from fangcheng_kit import tls
from fangcheng_kit.errors import ServiceError
from fangcheng_kit.principal import Principal


def shown(*uris: bytes, pem: bytes = b"pem") -> dict[str, list[bytes]]:
    context = {"transport_security_type": [b"ssl"], "x509_pem_cert": [pem]}
    return context | ({"peer_uri": list(uris)} if uris else {})


def named(*uris: bytes) -> Principal | None:
    return tls.peer_principal(shown(*uris), "club", {"gateway": ["act_as"]})


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        (b"spiffe://club/service/table", Principal("service", "table")),
        (
            b"spiffe://club/service/gateway",
            Principal("service", "gateway", frozenset({"act_as"})),
        ),
        (b"spiffe://club/operator/mei", Principal("operator", "mei")),
        # Whoever has a service's name is no service, and has none of its scopes.
        (b"spiffe://club/operator/gateway", Principal("operator", "gateway")),
        (b"spiffe://club/proxy/edge", None),
        (b"spiffe://club/proxy/gateway", None),
    ],
)
def test_a_certificate_names_its_holder(uri: bytes, expected: Principal | None) -> None:
    assert named(uri) == expected


@pytest.mark.parametrize(
    "uris",
    [
        (),
        (b"spiffe://club/service/table", b"spiffe://club/service/wallet"),
        (b"spiffe://other/service/table",),
        (b"spiffe://club.evil/service/table",),
        (b"spiffe://CLUB/service/table",),
        (b"spiffe://club/service/",),
        (b"spiffe://club/service/table/1",),
        (b"spiffe://club/service/table\n",),
        (b"spiffe://club/service/tabl%65",),
        (b"spiffe://club/service/" + b"x" * 129,),
        (b"spiffe://club/service/t\xc3\xa4ble",),
        (b"spiffe://club/player/ming",),
        (b"spiffe://club/viewer/ming",),
        (b"https://club/service/table",),
        (b"urn:spiffe://club/service/table",),
    ],
)
def test_a_certificate_that_names_nobody_here_is_refused(uris: tuple[bytes, ...]) -> None:
    with pytest.raises(ServiceError) as caught:
        named(*uris)
    assert caught.value.reason == "CERTIFICATE_INVALID"
    assert caught.value.code.name == "UNAUTHENTICATED"
    assert "spiffe://club/service/<name>" in str(caught.value)


def test_a_connection_without_a_certificate_names_nobody() -> None:
    assert tls.peer_principal({}, "club", {}) is None
    assert tls.peer_principal({"transport_security_type": [b"insecure"]}, "club", {}) is None
    assert tls.peer_principal({"transport_security_type": [b"ssl"]}, "club", {}) is None


def test_matchmaking_acts_for_players_at_the_table_and_nowhere_else() -> None:
    assert tls.granted("table", {}) == {"matchmaking": {"act_as"}}
    assert tls.granted("wallet", {}) == {}
    given = {"gateway": ["act_as"], "matchmaking": ["bot"]}
    assert tls.granted("table", given) == {
        "gateway": {"act_as"},
        "matchmaking": {"act_as", "bot"},
    }
    assert tls.granted("evaluation", given) == {"gateway": {"act_as"}, "matchmaking": {"bot"}}
