"""A service as a process: how it starts, stops and fails."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from fangcheng_client import connect, explain
from fangcheng_kit.tokens import mint_token
from tests.kit.echo import KEY, EchoRequest, Stub

ROOT = Path(__file__).parents[2]


class Process:
    """An echo process; its log lines are kept as they come."""

    def __init__(self, process: asyncio.subprocess.Process, port_file: Path) -> None:
        self.process = process
        self.port_file = port_file
        self.lines: list[str] = []
        self._grown = asyncio.Event()
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.lines.append(line.decode())
            self._grown.set()
        self._grown.set()

    async def logged(self, text: str) -> None:
        """Wait for a line with ``text``."""
        async with asyncio.timeout(60):
            while not any(text in line for line in self.lines):
                assert not self._reader.done(), self.lines
                self._grown.clear()
                await self._grown.wait()

    async def serving(self) -> str:
        """Wait until it serves; its address."""
        async with asyncio.timeout(60):
            while not self.port_file.exists():
                assert self.process.returncode is None, self.lines
                await asyncio.sleep(0.02)
        address: str = json.loads(self.port_file.read_text())["listen"]
        return address

    async def ended(self) -> int:
        """Wait for its end; its exit code."""
        async with asyncio.timeout(60):
            code = await self.process.wait()
            await self._reader
        return code


@asynccontextmanager
async def started(folder: Path, **variables: str) -> AsyncIterator[Process]:
    """An echo process with these settings."""
    port_file = folder / "port.json"
    environment = {
        **{name: value for name, value in os.environ.items() if "FANGCHENG" not in name},
        "FANGCHENG_DEV_KEY": KEY,
        "FANGCHENG_ECHO_DRAIN_SECONDS": "0.2",
        "FANGCHENG_ECHO_PORT_FILE": str(port_file),
        **{f"FANGCHENG_{name}": value for name, value in variables.items()},
    }
    process = Process(
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.kit.process"),
            cwd=ROOT,
            env=environment,
            stderr=asyncio.subprocess.PIPE,
        ),
        port_file,
    )
    try:
        yield process
    finally:
        if process.process.returncode is None:
            process.process.kill()
        await process.ended()


def channel_to(address: str, **options: Any) -> grpc.aio.Channel:
    return connect(address, token=mint_token(KEY, "operator"), **options)


# Settings.


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        (
            {"ECHO_DRAIN_SECONDS": "soon"},
            "FANGCHENG_ECHO_DRAIN_SECONDS=soon: must be a number",
        ),
        ({"GRACE_SECONDS": "-1"}, "FANGCHENG_GRACE_SECONDS=-1: must be at least 0"),
        ({"ECHO_BREAKS": "perhaps"}, "FANGCHENG_ECHO_BREAKS=perhaps: must be true or false"),
        ({"ECHO_LISTEN": "0.0.0.0:7100"}, "FANGCHENG_ECHO_LISTEN=0.0.0.0:7100: without TLS"),
        ({"ECHO_LISTEN": "example.org:7100"}, "or use 127.0.0.1, [::1] or localhost"),
        ({"ECHO_LISTEN": "7100"}, "FANGCHENG_ECHO_LISTEN=7100: expected HOST:PORT"),
        ({"DEV_KEY": ""}, "FANGCHENG_DEV_KEY: it must be set"),
        ({"DEV_KEY": "short"}, "FANGCHENG_DEV_KEY: it has 5 characters, at least 32 are needed"),
        ({"LOG_LEVEL": "loud"}, "FANGCHENG_LOG_LEVEL=loud: must be 'debug', 'info',"),
    ],
)
async def test_a_bad_setting_ends_the_start_with_its_name_and_code_2(
    tmp_path: Path, variables: dict[str, str], complaint: str
) -> None:
    async with started(tmp_path, **variables) as process:
        assert await process.ended() == 2
        text = "".join(process.lines)
        assert text.startswith("echo: bad settings\nFANGCHENG_")
        assert complaint in text
        assert "Traceback" not in text
        assert "short" not in text


async def test_all_bad_settings_are_named_at_once(tmp_path: Path) -> None:
    async with started(tmp_path, GRACE_SECONDS="x", LOG_LEVEL="loud") as process:
        assert await process.ended() == 2
        assert len(process.lines) == 3


@pytest.mark.parametrize("setting", ["ECHO_LISTEN", "METRICS_LISTEN"])
async def test_a_taken_port_ends_the_start_with_a_clear_message(
    tmp_path: Path, setting: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        async with started(tmp_path, **{setting: address}) as process:
            assert await process.ended() == 1
            problem = next(
                json.loads(line)["problem"] for line in process.lines if "cannot start" in line
            )
            assert address in problem
            assert "Traceback" not in "".join(process.lines)


async def test_a_second_server_on_a_port_of_the_first_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    async with started(tmp_path / "a") as first:
        address = await first.serving()
        async with started(tmp_path / "b", ECHO_LISTEN=address) as second:
            assert await second.ended() == 1


async def test_an_unknown_setting_is_warned_of_with_the_likely_one(tmp_path: Path) -> None:
    async with started(tmp_path, ECHO_LISTN="127.0.0.1:0", ECHO_SERVICE_HOST="10.0.0.1") as process:
        await process.serving()
        await process.logged("FANGCHENG_ECHO_LISTN is no setting; FANGCHENG_ECHO_LISTEN?")
        assert not any("SERVICE_HOST" in line for line in process.lines)


# Stopping.


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_first_not_serving_then_no_more_calls(
    tmp_path: Path, number: signal.Signals
) -> None:
    # An open stream does not hold the process until its grace is over: that never comes.
    async with started(tmp_path, ECHO_DRAIN_SECONDS="2", GRACE_SECONDS="3600") as process:
        address = await process.serving()
        channel = channel_to(address)
        stream = Stub(channel).Split(EchoRequest(text="a", tags=["hang"]))
        assert (await stream.read()).text == "a"
        health = health_pb2_grpc.HealthStub(grpc.aio.insecure_channel(address)).Watch(
            health_pb2.HealthCheckRequest()
        )
        assert (await health.read()).status == health_pb2.HealthCheckResponse.SERVING

        async with grpc.aio.insecure_channel(address) as unaware:
            call = unaware.unary_unary(
                "/fangcheng.test.v1.EchoService/Unary",
                request_serializer=EchoRequest.SerializeToString,
            )
            metadata = (("authorization", f"Bearer {mint_token(KEY, 'operator')}"),)
            assert b"b" in await call(EchoRequest(text="b"), metadata=metadata)
            process.process.send_signal(number)
            assert (await health.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
            # A client that has not noticed yet is still answered.
            assert b"c" in await call(EchoRequest(text="c"), metadata=metadata)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stream.read()
        assert explain(caught.value).reason == "DRAINING"
        assert await process.ended() == 0
        assert not process.port_file.exists()
        assert any('"stopped"' in line for line in process.lines)
        await channel.close()


async def test_a_second_interrupt_exits_at_once(tmp_path: Path) -> None:
    async with started(tmp_path, ECHO_DRAIN_SECONDS="60") as process:
        await process.serving()
        process.process.send_signal(signal.SIGINT)
        await process.logged('"draining"')
        process.process.send_signal(signal.SIGINT)
        assert await process.ended() == 130


async def test_a_signal_breaks_off_a_start(tmp_path: Path) -> None:
    async with started(tmp_path, ECHO_SLOW_START="yes") as process:
        await process.logged('"opening"')
        process.process.send_signal(signal.SIGTERM)
        assert await process.ended() == 0


async def test_a_process_that_hangs_at_its_end_is_ended_by_force(tmp_path: Path) -> None:
    async with started(
        tmp_path, ECHO_HANGS="yes", ECHO_DRAIN_SECONDS="0", GRACE_SECONDS="0"
    ) as process:
        await process.serving()
        process.process.send_signal(signal.SIGTERM)
        assert await process.ended() == 1


async def test_background_work_that_fails_ends_the_process(tmp_path: Path) -> None:
    async with started(tmp_path, ECHO_BREAKS="yes") as process:
        async with channel_to(await process.serving()) as channel:
            assert (await Stub(channel).Unary(EchoRequest(text="a"))).text == "a"
            assert await process.ended() == 1
        assert any("the background work broke" in line for line in process.lines)


# Logs.


async def test_logs_are_json_lines_with_the_request_id_and_without_tokens(tmp_path: Path) -> None:
    token = mint_token(KEY, "player:ming", ["bot"])
    async with started(tmp_path, LOG_LEVEL="debug") as process:
        async with connect(await process.serving(), token=token) as channel:
            for text in ("a", "fail", "crash"):
                made = Stub(channel).Unary(
                    EchoRequest(text=text), metadata=(("x-request-id", f"id-{text}"),)
                )
                assert await made.code() is not grpc.StatusCode.UNAVAILABLE
        await process.logged("id-crash")
        process.process.send_signal(signal.SIGTERM)
        assert await process.ended() == 0
        events = [json.loads(line) for line in process.lines]
        calls = {
            event["request_id"]: event
            for event in events
            if event["event"] == "call" and event["grpc_method"] == "Unary"
        }
        assert {name: (call["code"], call["level"]) for name, call in calls.items()} == {
            "id-a": ("OK", "debug"),
            "id-fail": ("FAILED_PRECONDITION", "info"),
            "id-crash": ("INTERNAL", "error"),
        }
        assert {call["caller"] for call in calls.values()} == {"player"}
        failed = next(event for event in events if event["event"] == "handler failed")
        assert "the secret of the house" in failed["exception"]
        assert failed["request_id"] == "id-crash"
        everything = "".join(process.lines)
        assert token not in everything
        assert "ming" not in everything
        assert KEY not in everything


async def test_calls_that_went_well_are_not_logged_by_default(tmp_path: Path) -> None:
    async with started(tmp_path) as process:
        async with channel_to(await process.serving()) as channel:
            await Stub(channel).Unary(EchoRequest(text="a"))
            with pytest.raises(grpc.aio.AioRpcError):
                await Stub(channel).Unary(EchoRequest(text="fail"))
        await process.logged("NOT_NOW")
        assert not any('"OK"' in line for line in process.lines)
