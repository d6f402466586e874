"""Whether a service is reached: its name, its port, its certificate, its health, and who calls."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import socket
import ssl
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from cryptography import x509
from grpc_health.v1 import health_pb2, health_pb2_grpc

from fangcheng.evaluation.v1 import evaluation_pb2, evaluation_pb2_grpc
from fangcheng.matchmaking.v1 import matchmaking_pb2, matchmaking_pb2_grpc
from fangcheng.table.v1 import table_pb2, table_pb2_grpc
from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from fangcheng_client import explain

from .deployment import Deployment, Way
from .findings import Finding, fails, fine, is_healthy, warns

CONNECT_SECONDS = 4.0
ANSWER_SECONDS = 6.0
SOON_DAYS = 14
"""A certificate that ends sooner ought to have been renewed."""


async def reached(deployment: Deployment, way: Way) -> list[Finding]:
    """Look at one service, all its addresses at once; each as far as it goes."""
    parts = await asyncio.gather(*(_reached(deployment, way, one) for one in way.addresses))
    return [finding for part in parts for finding in part]


async def _reached(deployment: Deployment, way: Way, address: str) -> list[Finding]:
    subject, found = way.subject(address), list[Finding]()
    missing = await _connected(subject, address)
    if missing is not None:
        found.append(missing)
        if missing.level == "fail":
            return found
    if deployment.ca is not None:
        found.append(await certificate(subject, address, deployment))
    if is_healthy(found):
        async with way.open(address) as channel:
            found.append(await _health(subject, channel, deployment))
            if is_healthy(found):
                found.append(await _admitted(subject, way.service, channel))
    return found


async def _connected(subject: str, address: str) -> Finding | None:
    """What keeps a connection from standing; None: it stands."""
    host, port = split(address)
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        return fails(
            "name",
            subject,
            f"the name {host} cannot be resolved: {error.strerror}",
            "Nobody who uses this name finds the service.",
            "Check the spelling and this host's DNS; within Kubernetes a service is found by "
            "<service>.<namespace>.",
        )
    problems = []
    places = sorted({str(place[0]) for *_, place in found})
    for place in places:
        try:
            await probe(place, port)
        except OSError as error:
            problems.append(f"{place}: {error.strerror or 'no answer'}")
    if not problems or (host == "localhost" and len(problems) < len(places)):
        return None  # whose other address is seldom listened at
    told = f"no connection ({', '.join(problems)})"
    if len(problems) < len(places):
        return warns(
            "port",
            subject,
            told,
            "Some addresses of the name lead nowhere: fewer processes than it says share the work.",
            "See whether those processes run, or take their addresses out of the name.",
        )
    return fails(
        "port",
        subject,
        told,
        "Nothing listens there, or something between lets nobody through.",
        "See whether the process runs and on which address it listens (FANGCHENG_LISTEN: 127.0.0.1 "
        "is reached from its own host alone), then look at firewalls and network policies between.",
    )


async def replicas(address: str) -> list[str]:
    """The addresses for which a name stands, of those that take connections."""
    host, port = split(address)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return []
    taking = []
    for place in sorted({str(place[0]) for *_, place in found}):
        with contextlib.suppress(OSError):
            await probe(place, port)
            taking.append(f"[{place}]:{port}" if ":" in place else f"{place}:{port}")
    return taking


async def probe(host: str, port: int) -> None:
    """Open a connection and close it again; raises OSError."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
    except TimeoutError as error:
        raise OSError(None, "no answer in time") from error
    writer.close()


def split(address: str) -> tuple[str, int]:
    """Host and port of an address."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


async def certificate(subject: str, address: str, deployment: Deployment) -> Finding:
    """Look at the certificate that a process shows, which is to be good for its host."""
    host, port = split(address)
    own = None if deployment.identity is None else deployment.identity.files
    try:
        end = await asyncio.to_thread(_shown, host, port, deployment.ca, own)
    except ssl.SSLCertVerificationError as error:
        return fails(
            "certificate",
            subject,
            f"its certificate is not good: {error.verify_message}",
            "No client that checks certificates connects.",
            _AGAINST.get(error.verify_code, "Issue it anew: docs/operations/certificates.md.")
            + " docs/operations/certificates.md has the whole of it.",
        )
    except (ssl.SSLError, OSError) as error:
        told = getattr(error, "reason", None) or error.strerror or str(error)
        return fails(
            "certificate",
            subject,
            f"no TLS: {told}",
            "Client and service do not agree on how the connection is protected.",
            "Leave --ca out where the service has no TLS (WRONG_VERSION_NUMBER); give "
            "--certificate and --certificate-key where it asks for a certificate of the caller.",
        )
    days = (end - datetime.datetime.now(datetime.UTC)).days
    told = f"its certificate is good until {end:%Y-%m-%d}, {days} days"
    if days >= SOON_DAYS:
        return fine("certificate", subject, told)
    return warns(
        "certificate",
        subject,
        told,
        "When it has ended, nobody connects any more.",
        "Renew it now; a service reads new files without a restart: "
        "docs/operations/certificates.md.",
    )


_AGAINST = {
    10: "It has expired: renew it, the service reads new files by itself.",
    18: "It is signed by itself: trust it with --ca, or have an authority sign it.",
    19: "Name the authority that has signed it with --ca.",
    20: "Name the authority that has signed it with --ca, or send the whole chain along.",
    62: "It is for another name: call the service by one that is in it, or issue it for this one.",
    64: "It is for another address: call the service by its name, or issue it for this address.",
}
"""What helps, by the codes of OpenSSL."""


def _shown(
    host: str, port: int, ca: Path | None, own: tuple[Path, Path] | None
) -> datetime.datetime:
    """When the certificate ends that a service shows, which has to be good for the host."""
    context = ssl.create_default_context(cafile=ca)
    context.set_alpn_protocols(["h2"])
    if own is not None:
        context.load_cert_chain(*own)
    with (
        socket.create_connection((host, port), CONNECT_SECONDS) as plain,
        context.wrap_socket(plain, server_hostname=host) as connection,
    ):
        shown = connection.getpeercert(binary_form=True)
    if shown is None:
        raise ssl.SSLError("it shows none")
    return x509.load_der_x509_certificate(shown).not_valid_after_utc


async def _health(subject: str, channel: grpc.aio.Channel, deployment: Deployment) -> Finding:
    stub: Any = health_pb2_grpc.HealthStub(channel)  # whose calls have no types
    try:
        answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=ANSWER_SECONDS)
    except grpc.aio.AioRpcError as error:
        problem = explain(error)
        told = f"its health cannot be asked: {problem.message} [{problem.reason}]"
        is_tls, is_named = deployment.ca is not None, deployment.identity is not None
        guessed = unasked(problem.code, is_tls=is_tls, is_named=is_named)
        return fails("health", subject, told, *guessed)
    if answer.status == health_pb2.HealthCheckResponse.SERVING:
        return fine("health", subject, "serves")
    name = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
    return fails(
        "health",
        subject,
        f"runs, and does not serve ({name})",
        "It waits for something that it needs (a database, another service, its kernels), or "
        "stops; clients go to other replicas.",
        "Its log says what for, in the line `not ready`; see "
        "docs/operations/alerts/CallsUnavailable.md.",
    )


def unasked(code: grpc.StatusCode, *, is_tls: bool, is_named: bool) -> tuple[str, str]:
    """What it means that a process takes a connection and does not tell its health; what to do.

    `is_tls`: its certificate was found good. `is_named`: the caller has shown one too.
    """
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return (
            "The process is there and says nothing: it is paused, hangs, or has too much to do.",
            "Look at its CPU and its host's, and at the end of its log. What hangs is to be "
            "killed: nothing that was answered is lost.",
        )
    if code is grpc.StatusCode.UNAVAILABLE and is_tls and not is_named:
        return (
            "It closes the connection: it asks for a certificate of the caller.",
            "Give --certificate and --certificate-key, of the authority that the service trusts "
            "(FANGCHENG_TLS_CLIENT_CA).",
        )
    if code is grpc.StatusCode.UNAVAILABLE and is_tls:
        return (
            "It closes the connection: it does not trust the certificate of the caller.",
            "Have --certificate issued by the authority that the service trusts "
            "(FANGCHENG_TLS_CLIENT_CA), and see that it has not expired.",
        )
    if code is grpc.StatusCode.UNAVAILABLE:
        return (
            "What listens there does not speak gRPC in plain text.",
            "If the service has TLS, name the certificates to trust with --ca; otherwise see what "
            "listens on this port.",
        )
    return (
        "What listens there is no service of the suite.",
        "See what it is: another program on this port, or a proxy that does not pass gRPC on.",
    )


async def _admitted(subject: str, service: str, channel: grpc.aio.Channel) -> Finding:
    """Whether an operator's call is answered."""
    try:
        await _ask(service, channel)
    except grpc.aio.AioRpcError as error:
        problem = explain(error)
        return fails(
            "caller",
            subject,
            f"refuses the call of an operator: {problem.message} [{problem.reason}]",
            "Whoever calls like this is not served.",
            problem.cure() or "Give the token of an operator: `fangcheng token operator`.",
        )
    return fine("caller", subject, "answers an operator")


async def _ask(service: str, channel: grpc.aio.Channel) -> None:
    match service:
        case "matchmaking":
            pools = matchmaking_pb2_grpc.MatchmakingServiceStub(channel).ListPools
            await pools(matchmaking_pb2.ListPoolsRequest(), timeout=ANSWER_SECONDS)
        case "table":
            tables = table_pb2_grpc.TableServiceStub(channel).ListTables
            await tables(table_pb2.ListTablesRequest(page_size=1), timeout=ANSWER_SECONDS)
        case "wallet":
            currencies = wallet_pb2_grpc.WalletServiceStub(channel).ListCurrencies
            await currencies(wallet_pb2.ListCurrenciesRequest(), timeout=ANSWER_SECONDS)
        case _:
            rules = evaluation_pb2_grpc.EvaluationServiceStub(channel).ListRuleSets
            await rules(evaluation_pb2.ListRuleSetsRequest(), timeout=ANSWER_SECONDS)
