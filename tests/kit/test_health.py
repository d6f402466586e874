"""Health tells the truth, for the whole and for each service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import grpc
import grpc.aio
import httpx
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from fangcheng_kit import Kit, Running, Servicer, Settings, serving
from fangcheng_kit.background import running as in_background
from fangcheng_kit.tokens import mint_token
from tests.kit.conftest import Eventually
from tests.kit.echo import KEY, SERVICE, Echo, add

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture
async def health(running: Running) -> AsyncIterator[health_pb2_grpc.HealthStub]:
    async with grpc.aio.insecure_channel(running.address) as channel:
        yield health_pb2_grpc.HealthStub(channel)


@pytest.mark.parametrize("name", ["", SERVICE])
async def test_health_follows_what_the_service_says_without_a_token(
    running: Running, health: health_pb2_grpc.HealthStub, name: str
) -> None:
    watched = health.Watch(health_pb2.HealthCheckRequest(service=name))
    assert (await watched.read()).status == SERVING
    running.kit.health(False, "no database")
    assert (await watched.read()).status == NOT_SERVING
    running.kit.health(True)
    assert (await watched.read()).status == SERVING
    running.kit.health(False, "no database")
    running.kit.health(True)
    running.kit.health(False, "no evaluator")
    assert (await watched.read()).status == NOT_SERVING


async def test_nothing_makes_a_draining_server_serving_again(
    running: Running, health: health_pb2_grpc.HealthStub
) -> None:
    await running.drain()
    assert running.kit.draining.is_set()
    running.kit.health(False)
    running.kit.health(True)
    for _ in range(3):
        assert (await health.Check(health_pb2.HealthCheckRequest())).status == NOT_SERVING


async def test_a_process_that_waits_or_stops_is_alive(
    running: Running, health: health_pb2_grpc.HealthStub
) -> None:
    running.kit.health(False, "no database")
    await running.drain()
    for name, status in (("live", SERVING), ("", NOT_SERVING)):
        answer = await health.Check(health_pb2.HealthCheckRequest(service=name))
        assert answer.status == status


async def test_a_service_that_says_so_while_it_opens_starts_as_not_serving() -> None:
    @asynccontextmanager
    async def open_service(settings: Settings, kit: Kit) -> AsyncIterator[list[Servicer]]:
        kit.health(False, "still loading")
        yield [Servicer(add, Echo(), SERVICE)]

    async with (
        serving("echo", Settings(dev_key=KEY, drain_seconds=0), open_service) as server,
        grpc.aio.insecure_channel(server.address) as channel,
    ):
        stub = health_pb2_grpc.HealthStub(channel)
        for name in ("", SERVICE):
            answer = await stub.Check(health_pb2.HealthCheckRequest(service=name))
            assert answer.status == NOT_SERVING


async def test_an_unknown_service_is_not_found(health: health_pb2_grpc.HealthStub) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await health.Check(health_pb2.HealthCheckRequest(service="none"))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_reflection_lists_the_services(running: Running) -> None:
    async with grpc.aio.insecure_channel(running.address) as channel:
        call = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
        await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        answer = await call.read()
        call.cancel()
    assert {service.name for service in answer.list_services_response.service} >= {
        SERVICE,
        "grpc.health.v1.Health",
    }


async def test_background_work_runs_beside_and_is_over_afterwards(
    eventually: Eventually,
) -> None:
    done: list[str] = []

    async def work() -> None:
        done.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            done.append("over")

    async def short() -> None:
        done.append("short")

    async with in_background(work(), short()):
        await eventually(lambda: {"begun", "short"} <= set(done))
        assert "over" not in done
    assert done[-1] == "over"


async def test_background_work_that_fails_ends_the_body() -> None:
    async def work() -> None:
        raise OSError("lost the disk")

    with pytest.raises(ExceptionGroup) as caught:
        async with in_background(work()):
            await asyncio.Event().wait()
    assert isinstance(caught.value.exceptions[0], OSError)


def bearer_of(subject: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {mint_token(KEY, subject)}"),)


async def test_beyond_this_host_only_operators_are_told_what_a_service_has() -> None:
    @asynccontextmanager
    async def open_service(settings: Settings, kit: Kit) -> AsyncIterator[list[Servicer]]:
        yield [Servicer(add, Echo(), SERVICE)]

    settings = Settings(
        dev_key=KEY,
        drain_seconds=0,
        dangerously_without_tls=True,
        dangerously_with_dev_key=True,
        listen="0.0.0.0:0",
    )
    async with serving("echo", settings, open_service) as server:
        port = server.address.rpartition(":")[2]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            answer = await health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest()
            )
            assert answer.status == SERVING
            ask = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo
            asked = reflection_pb2.ServerReflectionRequest(list_services="")
            for subject, code in (
                ("", grpc.StatusCode.UNAUTHENTICATED),
                ("player:ming", grpc.StatusCode.PERMISSION_DENIED),
                ("service:table", grpc.StatusCode.PERMISSION_DENIED),
            ):
                bearer = bearer_of(subject) if subject else ()
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await ask(iter([asked]), metadata=bearer).read()
                assert caught.value.code() == code
            told = await ask(iter([asked]), metadata=bearer_of("operator:mei")).read()
        assert SERVICE in {one.name for one in told.list_services_response.service}


async def page(running: Running, path: str) -> tuple[int, str]:
    """Status and text of a page of the metrics' port."""
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"http://{running.metrics_address}{path}")
    return answer.status_code, answer.text


async def test_probes_that_show_no_certificate_are_told_the_same_beside_the_metrics(
    running: Running,
) -> None:
    assert await page(running, "/ready") == (200, "yes\n")
    assert await page(running, "/live") == (200, "yes\n")
    running.kit.health(False, "no database")
    assert await page(running, "/ready") == (503, "no\n")
    assert await page(running, "/live") == (200, "yes\n")
    running.kit.health(True)
    await running.drain()
    assert await page(running, "/ready") == (503, "no\n")
    assert await page(running, "/live") == (200, "yes\n")


async def test_a_process_is_not_alive_before_it_has_opened() -> None:
    found = []

    @asynccontextmanager
    async def open_service(settings: Settings, kit: Kit) -> AsyncIterator[list[Servicer]]:
        async with httpx.AsyncClient() as client:
            for path in ("live", "ready"):
                answer = await client.get(f"http://{kit.metrics_address}/{path}")
                found.append(answer.status_code)
        yield [Servicer(add, Echo(), SERVICE)]

    async with serving("echo", Settings(dev_key=KEY, drain_seconds=0), open_service):
        assert found == [503, 503]


async def test_a_process_whose_loop_stands_still_is_neither_ready_nor_alive(
    running: Running,
) -> None:
    with ThreadPoolExecutor(1) as pool:

        def asked() -> list[int]:
            with httpx.Client(timeout=60) as client:
                address = f"http://{running.metrics_address}"
                return [client.get(f"{address}/{path}").status_code for path in ("live", "ready")]

        # The loop is here, and waits as nothing in a loop should.
        assert pool.submit(asked).result() == [503, 503]
    assert await page(running, "/live") == (200, "yes\n")
