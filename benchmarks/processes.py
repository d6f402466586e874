"""Processes of the services, started for a benchmark and asked what they use."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc


@dataclass(frozen=True, slots=True)
class Service:
    """A process of a service."""

    process: asyncio.subprocess.Process
    address: str
    metrics: str

    def value(self, metric: str) -> float:
        """One of its metrics without labels; 0 where it has none such."""
        with urllib.request.urlopen(f"http://{self.metrics}/metrics") as answer:
            text = str(answer.read(), "utf-8")
        found = re.search(rf"^{metric} (\S+)$", text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    def cpu_seconds(self) -> float:
        """CPU time that it has used."""
        return self.value("process_cpu_seconds_total")

    def memory_bytes(self) -> float:
        """Memory that it holds now."""
        return self.value("process_resident_memory_bytes")


async def start(
    service: str, port_file: Path, key: str, settings: Mapping[str, object] | None = None
) -> asyncio.subprocess.Process:
    """Start a process of a service; `settings` of its own, by their names there."""
    prefix = f"FANGCHENG_{service.upper()}_"
    own = {"port_file": port_file, "drain_seconds": 0, **(settings or {})}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", f"fangcheng_{service}"),
        env={
            **os.environ,
            "FANGCHENG_DEV_KEY": key,
            "FANGCHENG_LOG_LEVEL": "error",
            **{prefix + name.upper(): str(value) for name, value in own.items()},
        },
        stdout=subprocess.DEVNULL,
    )


async def stop(process: asyncio.subprocess.Process) -> None:
    """End it, where it has not ended by itself."""
    if process.returncode is None:
        process.terminate()
    await process.wait()


async def ready(process: asyncio.subprocess.Process, port_file: Path) -> Service:
    """Wait until it serves."""
    told = await told_by(process, port_file)
    async with grpc.aio.insecure_channel(told["listen"]) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)  # whose calls have no types
        async for answer in health.Watch(health_pb2.HealthCheckRequest()):
            if answer.status == health_pb2.HealthCheckResponse.SERVING:
                break
    return Service(process, told["listen"], told["metrics"])


async def told_by(process: asyncio.subprocess.Process, port_file: Path) -> dict[str, str]:
    """The addresses of a process, once it has told them."""
    while (told := _read(port_file)) is None:
        if process.returncode is not None:
            raise SystemExit(f"the process ended with {process.returncode}")
        await asyncio.sleep(0.05)
    return told


def _read(port_file: Path) -> dict[str, str] | None:
    return json.loads(port_file.read_text("utf-8")) if port_file.exists() else None
