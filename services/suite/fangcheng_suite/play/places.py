"""Where a person plays: a suite of its own, the one that runs here, or one elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import grpc.aio

from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from fangcheng_rules.ruleset import RuleSet
from fangcheng_suite.access import Access, reach
from fangcheng_suite.bots.crowd import Bank, keep_playing, make_bots
from fangcheng_suite.errors import from_call
from fangcheng_suite.launcher import Launcher
from fangcheng_suite.pools import practice_pool
from fangcheng_suite.state import StateFolder

BOTS = 3
HANDS = 8
TURN_MS, CLAIM_MS, RESERVE_MS, BETWEEN_HANDS_MS = 30_000, 15_000, 60_000, 8_000
"""A person against bots has time to look."""


@dataclass(frozen=True, slots=True)
class LocalWay:
    """A player of a suite here, whose key signs his tokens."""

    access: Access
    player_id: str

    def channel(self, service: str, target: str | None = None) -> grpc.aio.Channel:
        """A channel on which the player calls."""
        return self.access.channel(service, f"player:{self.player_id}", target=target or None)

    @property
    def has_hints(self) -> bool:
        """Every suite has evaluators."""
        return True


@dataclass(frozen=True, slots=True)
class RemoteWay:
    """A player of services elsewhere, with the token that the studio gave him."""

    targets: Mapping[str, str]
    token: str
    ca_file: Path | None = None

    def channel(self, service: str, target: str | None = None) -> grpc.aio.Channel:
        """A channel on which the player calls: to the address that was named, whichever owns the
        table; raises SuiteError."""
        return reach(self.targets[service], self.token, self.ca_file)

    @property
    def has_hints(self) -> bool:
        """Whether an evaluation service was named."""
        return "evaluation" in self.targets


def player_id_of(name: str) -> str:
    """A player id for whoever plays under a name here."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return slug or "player"


async def open_wallet(access: Access, player_id: str) -> None:
    """A wallet for the player, if he has none. Raises SuiteError."""
    try:
        async with access.channel("wallet") as channel:
            stub = wallet_pb2_grpc.WalletServiceStub(channel)
            await stub.OpenWallet(wallet_pb2.OpenWalletRequest(player_id=player_id))
    except grpc.aio.AioRpcError as error:
        raise from_call(error, f"opening a wallet for {player_id}") from error


@contextlib.asynccontextmanager
async def embedded(rules: RuleSet, strength: str, think_seconds: float) -> AsyncIterator[Access]:
    """A suite of its own with three bots that wait, until the end of the block; nothing is kept.

    `strength`: of `fangcheng_rules.players`. Raises SuiteError.
    """
    key = secrets.token_urlsafe(32)
    with tempfile.TemporaryDirectory(prefix="fangcheng-play-") as path:
        folder = StateFolder(Path(path))
        with folder.claimed():
            pools = folder.path / "pools.yaml"
            pools.write_text(json.dumps({"pools": [_pool(rules)], "rooms": []}), "utf-8")
            launcher = Launcher(
                folder,
                key,
                temporary=True,
                restart=True,
                settings={"matchmaking": {"POOLS": str(pools)}},
                # One table asks little: no time for a compiler, as in the demo.
                environment={"FANGCHENG_INTERPRETED": "1"},
            )
            async with launcher:
                access = Access(launcher.target, key)
                bank = Bank(access)
                playing = [
                    asyncio.create_task(keep_playing(bot, practice_pool(rules), bank, standby=True))
                    for bot in make_bots(range(BOTS), access, think_seconds, strength=strength)
                ]
                try:
                    yield access
                finally:
                    for task in playing:
                        task.cancel()
                    await asyncio.gather(*playing, return_exceptions=True)


def _pool(rules: RuleSet) -> dict[str, object]:
    return {
        "id": practice_pool(rules),
        "name": f"练习 Practice: {rules.name_zh} {rules.name_en}",
        "mode": "practice",
        "rules": {"id": rules.id},
        "stakes": [{"currency": "points", "book": rules.id, "per_unit": 1}],
        "hands": HANDS,
        "timing": {
            "turn_ms": TURN_MS,
            "claim_ms": CLAIM_MS,
            "reserve_ms": RESERVE_MS,
            "between_hands_ms": BETWEEN_HANDS_MS,
        },
        "fill_with_bots_after_ms": 1,
    }
