"""`fangcheng dev-certs`: the files that it writes, and what is in them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store
from typer.testing import CliRunner, Result

from fangcheng_kit import tls
from fangcheng_suite.certificates import Authority
from fangcheng_suite.commands import app


def dev_certs(*words: str) -> Result:
    return CliRunner().invoke(app, ["dev-certs", *words], env={"COLUMNS": "100"})


def shown(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def uris(certificate: x509.Certificate) -> list[str]:
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return names.get_values_for_type(x509.UniformResourceIdentifier)


def test_every_service_a_proxy_and_an_operator_have_certificates_of_one_authority(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "certs"
    told = dev_certs(str(folder), "--host", "wallet.example", "--trust-domain", "club")
    assert told.exit_code == 0, told.output
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.name for path in folder.glob("*.key")} == {
        *("ca.key", "bots.key", "edge.key", "operator.key"),
        *("wallet.key", "evaluation.key", "table.key", "matchmaking.key", "console.key"),
    }
    for key in folder.glob("*.key"):
        assert key.stat().st_mode & 0o777 == 0o600
        assert key.with_suffix(".crt").exists()
    trusted = PolicyBuilder().store(Store([shown(folder / "ca.crt")]))
    verified = trusted.build_client_verifier().verify(shown(folder / "wallet.crt"), [])
    assert verified.subjects is not None
    for host in ("wallet", "localhost", "wallet.example"):
        trusted.build_server_verifier(x509.DNSName(host)).verify(shown(folder / "wallet.crt"), [])
    with pytest.raises(x509.verification.VerificationError):
        trusted.build_server_verifier(x509.DNSName("table")).verify(
            shown(folder / "wallet.crt"), []
        )


def test_each_certificate_names_its_holder_for_a_month(tmp_path: Path) -> None:
    assert dev_certs(str(tmp_path), "--trust-domain", "club").exit_code == 0
    found = {}
    for path in tmp_path.glob("*.crt"):
        if path.stem == "ca":
            continue
        certificate = shown(path)
        assert (certificate.not_valid_after_utc - datetime.now(UTC)).days in (29, 30)
        (uri,) = uris(certificate)
        context = {
            "transport_security_type": [b"ssl"],
            "x509_pem_cert": [b"pem"],
            "peer_uri": [uri.encode()],
        }
        holder = tls.peer_principal(context, "club", {})
        found[path.stem] = holder and holder.subject
    services = ("wallet", "evaluation", "table", "matchmaking", "console", "bots")
    assert found == {
        **{service: f"service:{service}" for service in services},
        "edge": None,
        "operator": "operator:dev",
    }


def test_run_again_it_renews_the_certificates_and_keeps_the_authority(tmp_path: Path) -> None:
    assert dev_certs(str(tmp_path)).exit_code == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert dev_certs(str(tmp_path)).exit_code == 0
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {name for name in before if before[name] == after[name]} == {"ca.crt", "ca.key"}


def test_an_authority_that_is_soon_over_is_replaced(tmp_path: Path) -> None:
    old = Authority.new(days=20)
    (tmp_path / "ca.crt").write_bytes(old.certificate)
    (tmp_path / "ca.key").write_bytes(old.key)
    assert dev_certs(str(tmp_path)).exit_code == 0
    assert (tmp_path / "ca.crt").read_bytes() != old.certificate


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--host", "wallet:7102"], "'wallet:7102' is no name of a host"),
        (["--trust-domain", "A B"], "'A B' is no trust domain"),
    ],
)
def test_names_that_are_none_are_refused_before_anything_is_written(
    words: list[str], problem: str, tmp_path: Path
) -> None:
    folder = tmp_path / "certs"
    told = dev_certs(str(folder), *words)
    assert told.exit_code == 1
    assert problem in told.output
    assert not folder.exists()


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("a certificate", "utf-8")
    (tmp_path / "ca.key").write_text("a key", "utf-8")
    told = dev_certs(str(tmp_path))
    assert told.exit_code == 1
    assert "holds an authority that this command did not make" in told.output
    assert {path.name for path in tmp_path.iterdir()} == {"ca.crt", "ca.key"}
