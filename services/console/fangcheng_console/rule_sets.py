"""The rule sets that the evaluator plays, as the page names and explains them."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import grpc.aio

from fangcheng.evaluation.v1 import evaluation_pb2
from fangcheng.rules.v1 import rules_pb2

from .plain import plain, whole

FRESH_SECONDS = 60.0
"""How long an answer of the evaluator is believed: it changes with its version alone."""
AGAIN_SECONDS = 5.0
"""So long after it gave none, the last one is believed."""
ANSWER_SECONDS = 3.0
"""It has the answer ready; pages wait for it."""


class RuleSets:
    """What the evaluator lists, asked for again after a while.

    While the evaluator is away, the last answer stands.
    """

    def __init__(self, evaluation: Any, clock: Callable[[], float] = time.monotonic) -> None:
        """`evaluation`: a stub of its service."""
        self._evaluation = evaluation
        self._clock = clock
        self._asking: asyncio.Task[None] | None = None
        self._known: list[rules_pb2.RuleSet] = []
        self._until = -math.inf

    async def known(self) -> list[rules_pb2.RuleSet]:
        """The newest revision of each, then older ones that are still played.

        `AioRpcError` where the evaluator does not answer and never has.
        """
        if self._clock() >= self._until:
            # All who want to know wait for the same answer, not for each other's.
            if self._asking is None or self._asking.done():
                self._asking = asyncio.create_task(self._ask())
            await asyncio.shield(self._asking)
        return self._known

    async def _ask(self) -> None:
        request = evaluation_pb2.ListRuleSetsRequest()
        try:
            listed = await self._evaluation.ListRuleSets(request, timeout=ANSWER_SECONDS)
        except grpc.aio.AioRpcError:
            if not self._known:
                raise
            self._until = self._clock() + AGAIN_SECONDS
        else:
            self._known = list(listed.rule_sets)
            self._until = self._clock() + FRESH_SECONDS

    async def find(self, id: str, revision: int = 0) -> rules_pb2.RuleSet | None:
        """A rule set; `revision` 0: the newest."""
        for rules in await self.known():
            if rules.id == id and revision in (0, rules.revision):
                return rules
        return None


def as_json(known: Iterable[rules_pb2.RuleSet]) -> list[dict[str, Any]]:
    """Rule sets as the page reads them, in their order; `newest` is false for older revisions."""
    seen: set[str] = set()
    told = []
    for rules in known:
        told.append({**_rule_set(rules), "newest": rules.id not in seen})
        seen.add(rules.id)
    return told


def _rule_set(rules: rules_pb2.RuleSet) -> dict[str, Any]:
    """`tiles` is how many of each there are, by code."""
    told: dict[str, Any] = plain(rules)
    told["tiles"] = {str(tile): copies for tile, copies in Counter(rules.tiles).items()}
    told["options"] = [_option(option) for option in rules.options]
    return told


def _option(option: rules_pb2.OptionSpec) -> dict[str, Any]:
    value = option.default_value
    return {
        "id": option.id,
        "type": rules_pb2.OptionType.Name(option.type).removeprefix("OPTION_TYPE_").lower(),
        "default": getattr(value, value.WhichOneof("value") or "text"),
        "minimum": whole(option.minimum),
        "maximum": whole(option.maximum),
        "choices": list(option.choices),
        "name_zh": option.name_zh,
        "meaning": option.meaning,
    }
