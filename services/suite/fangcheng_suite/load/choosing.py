"""How the players of a load choose: at once, by their own hand, as people do who play quickly.

They keep pairs and neighbours, so that hands are won about as people win them, and cost the load
next to nothing; nobody is asked what a hand is worth.
"""

from __future__ import annotations

import random
from collections import Counter

from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng_client.view import TableView

PAIR, NEIGHBOUR, SECOND = 4, 2, 1
"""What another tile of the same kind is worth to a tile, one beside it, and one beside that."""
PONG_SHARE = 0.5
"""Of the pongs that are offered, so many are made."""
HONOURS = 41
"""From here on tiles have no neighbours."""


def choose(view: TableView, prompt: events_pb2.Prompt, chance: random.Random) -> state_pb2.Action:
    """The answer to a prompt: always one of its actions."""
    by_kind: dict[str, list[state_pb2.Action]] = {}
    for action in prompt.actions:
        by_kind.setdefault(action.kind, []).append(action)
    for kind in ("win", "kong"):
        if kind in by_kind:
            return by_kind[kind][0]
    if "pong" in by_kind and chance.random() < PONG_SHARE:
        return by_kind["pong"][0]
    if "pass" in by_kind:
        return by_kind["pass"][0]
    if "discard" in by_kind:
        return _discard(view, by_kind["discard"], chance)
    return prompt.actions[0]


def _discard(
    view: TableView, discards: list[state_pb2.Action], chance: random.Random
) -> state_pb2.Action:
    if declares := [action for action in discards if action.declare]:
        return declares[0]  # which is offered to a ready hand alone
    hand = Counter(view.own.concealed)

    def worth(tile: int) -> int:
        near = 0
        if tile < HONOURS:
            near = sum(NEIGHBOUR for beside in (tile - 1, tile + 1) if hand[beside])
            near += sum(SECOND for beside in (tile - 2, tile + 2) if hand[beside])
        return PAIR * (hand[tile] - 1) + near

    return min(discards, key=lambda action: (worth(action.tile), chance.random()))
