"""Settings from the environment, beyond what the tests of the process show."""

from __future__ import annotations

import pytest
from pydantic import Field

from fangcheng_kit.settings import (
    Address,
    BadSettings,
    Settings,
    load,
    reference,
    split_address,
)
from tests.kit.echo import KEY


class WalletSettings(Settings):
    """The settings of a service."""

    listen: Address = Field(default="127.0.0.1:7104", description="Where it listens.")
    database: str = Field(default="wallet.db", description="The file; `a|b`.")
    most: int = Field(default=3, gt=0, le=9, description="How many.")
    names: list[str] = Field(default=["a"], description="Which.")


@pytest.fixture(autouse=True)
def dev_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FANGCHENG_DEV_KEY", KEY)


def test_a_setting_of_the_service_wins_over_one_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FANGCHENG_GRACE_SECONDS", "7")
    assert load("wallet", WalletSettings).grace_seconds == 7
    monkeypatch.setenv("FANGCHENG_WALLET_GRACE_SECONDS", "8")
    assert load("wallet", WalletSettings).grace_seconds == 8
    assert load("table", WalletSettings).grace_seconds == 7


def test_a_services_own_setting_is_not_taken_from_a_variable_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FANGCHENG_DATABASE", "everybodys.db")
    monkeypatch.setenv("FANGCHENG_WALLET_MOST", "4")
    settings = load("wallet", WalletSettings)
    assert (settings.database, settings.most) == ("wallet.db", 4)


def test_settings_made_directly_read_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FANGCHENG_GRACE_SECONDS", "7")
    monkeypatch.setenv("DATABASE", "elsewhere.db")
    settings = WalletSettings(dev_key=KEY, most=5)
    assert (settings.grace_seconds, settings.database, settings.most) == (5, "wallet.db", 5)


TLS = {"TLS_CERTIFICATE": "own.pem", "TLS_KEY": "own.key"}
MUTUAL = TLS | {"TLS_CLIENT_CA": "ca.pem"}


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "WALLET_LISTEN={address}: without TLS a service listens on this host only"),
        ({"DANGEROUSLY_WITH_DEV_KEY": "1"}, "WALLET_LISTEN={address}: without TLS"),
        (MUTUAL, "DEV_KEY: it is for development, on this host; a service that listens on"),
        (TLS | {"DEV_KEY": ""}, "DEV_KEY: it must be set, or else JWKS or TLS_CLIENT_CA"),
    ],
)
@pytest.mark.parametrize("address", ["0.0.0.0:7102", "[::]:7102", "wallet.example:7102"])
def test_beyond_this_host_nothing_is_open(
    given: dict[str, str], complaint: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FANGCHENG_WALLET_LISTEN", address)
    for name, text in given.items():
        monkeypatch.setenv(f"FANGCHENG_{name}", text)
    with pytest.raises(BadSettings) as caught:
        load("wallet", WalletSettings)
    assert str(caught.value).startswith(f"FANGCHENG_{complaint.format(address=address)}")


@pytest.mark.parametrize(
    "given",
    [MUTUAL, TLS | {"JWKS": "keys.json"}, {"DANGEROUSLY_WITHOUT_TLS": "1", "JWKS": "keys.json"}],
)
def test_beyond_this_host_a_service_has_tls_and_knows_who_calls(
    given: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FANGCHENG_WALLET_LISTEN", "0.0.0.0:7102")
    monkeypatch.setenv("FANGCHENG_DEV_KEY", "")
    for name, text in given.items():
        monkeypatch.setenv(f"FANGCHENG_{name}", text)
    assert load("wallet", WalletSettings).listen == "0.0.0.0:7102"


@pytest.mark.parametrize(
    "given",
    [
        {"DANGEROUSLY_WITHOUT_TLS": "1", "DANGEROUSLY_WITH_DEV_KEY": "1"},
        TLS | {"DANGEROUSLY_WITH_DEV_KEY": "1"},
    ],
)
def test_dangers_are_taken_by_their_names(
    given: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FANGCHENG_WALLET_LISTEN", "0.0.0.0:7102")
    for name, text in given.items():
        monkeypatch.setenv(f"FANGCHENG_{name}", text)
    settings = load("wallet", WalletSettings)
    assert settings.listen == "0.0.0.0:7102"
    assert set(settings.dangers()) == {name for name in given if name.startswith("DANGEROUSLY")}


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"TLS_CERTIFICATE": "a.pem"}, "TLS_KEY: TLS_CERTIFICATE and TLS_KEY belong together"),
        ({"TLS_KEY": "a.key"}, r"TLS_KEY=a\.key: TLS_CERTIFICATE and TLS_KEY belong together"),
        ({"TLS_CLIENT_CA": "ca.pem"}, r"TLS_CLIENT_CA=ca\.pem: who asks for certificates has one"),
        ({"TLS_TRUST_DOMAIN": "a/b"}, "TLS_TRUST_DOMAIN=a/b: must match"),
        ({"CERTIFICATE_SCOPES": "act_as"}, "CERTIFICATE_SCOPES=act_as: it cannot be read as JSON"),
    ],
)
def test_settings_of_certificates_that_do_not_go_together_are_refused(
    given: dict[str, str], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in given.items():
        monkeypatch.setenv(f"FANGCHENG_WALLET_{name}", text)
    with pytest.raises(BadSettings, match=rf"^FANGCHENG_(WALLET_)?{complaint}"):
        load("wallet", WalletSettings)


def test_scopes_of_certificates_are_given_by_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FANGCHENG_CERTIFICATE_SCOPES", '{"gateway": ["act_as"]}')
    assert load("wallet", WalletSettings).certificate_scopes == {"gateway": {"act_as"}}


def test_a_list_that_is_no_json_is_a_bad_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FANGCHENG_WALLET_NAMES", "[a")
    with pytest.raises(BadSettings, match=r"^FANGCHENG_WALLET_NAMES=\[a: it cannot be read"):
        load("wallet", WalletSettings)


@pytest.mark.parametrize("field", [Field(3), Field(description="no default")])
def test_a_setting_needs_a_description_and_a_default(field: object) -> None:
    with pytest.raises(TypeError, match=r"Bare\.size needs a description and a default"):
        type("Bare", (Settings,), {"__annotations__": {"size": int}, "size": field})


def test_the_key_is_not_shown_with_the_settings() -> None:
    assert KEY not in repr(WalletSettings(dev_key=KEY))


def test_the_reference_names_every_variable_with_default_and_bounds() -> None:
    page = reference({"wallet": WalletSettings})
    common, own = page.split("## wallet")
    for name in Settings.model_fields:
        assert f"`FANGCHENG_{name.upper()}`" in common
    assert "| `FANGCHENG_WALLET_LISTEN` | `127.0.0.1:7104` | Where it listens. |" in own
    assert "| `FANGCHENG_WALLET_MOST` | `3` | How many. (> 0, ≤ 9) |" in own
    assert "The file; `a\\|b`." in own
    assert "GRACE_SECONDS" not in own
    assert KEY not in page


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:7100", ("::1", 7100)),
        ("localhost:65535", ("localhost", 65535)),
    ],
)
def test_an_address_is_host_and_port(text: str, parts: tuple[str, int]) -> None:
    assert split_address(text) == parts


@pytest.mark.parametrize("text", ["", ":1", "a:", "a:b", "a:-1", "a:65536", "::1:7100", "a:१"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected HOST:PORT"):
        split_address(text)
