"""What the tests of evaluation share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from fangcheng.evaluation.v1 import evaluation_pb2_grpc
from fangcheng_client import connect
from fangcheng_evaluation.service import open_service
from fangcheng_evaluation.settings import EvaluationSettings
from fangcheng_kit import Running, serving
from fangcheng_kit.tokens import mint_token

KEY = "a development key of the tests, long enough"


def settings(**more: object) -> EvaluationSettings:
    return EvaluationSettings(dev_key=KEY, grace_seconds=0.1, **more)


async def until_ready(running: Running) -> None:
    """Waits until the server says that it serves: the kernels are warmed up beside it."""
    async with grpc.aio.insecure_channel(running.address) as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        async for told in watch:
            if told.status == health_pb2.HealthCheckResponse.SERVING:
                return


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    async with serving("evaluation", settings(), open_service) as server:
        await until_ready(server)
        yield server


@pytest.fixture
async def stub(running: Running) -> AsyncIterator[evaluation_pb2_grpc.EvaluationServiceAsyncStub]:
    async with connect(running.address, token=mint_token(KEY, "service:table")) as channel:
        yield evaluation_pb2_grpc.EvaluationServiceStub(channel)
