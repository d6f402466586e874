"""What the player is asked, as keys to press. Plain data; nothing here knows the screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng_client.view import SeatView
from fangcheng_rules.errors import RulesError
from fangcheng_rules.rulesets import rule_set
from fangcheng_suite.render import MELD_NAMES

from .tongue import Tongue

TILE_KEYS = ("1", "2", "3", "4", "5", "6", "7", "8", "9", "0", "-", "=", "[", "]")
"""Of the tiles of the hand, from the left."""
DRAWN_KEY = "␣"
"""Of the tile just drawn, beside its place's own: the space bar."""

PASS = "pass"  # noqa: S105 # nosec B105 # no password, but what is done to a claim
CALL_KEYS = {"win": "w", "pong": "p", "chi": "cvb", "kong": "kjg", PASS: "x", "false_win": "f"}
"""Several ways to chi or to kong have a key each."""
DECLARE_KEY = "t"

Discards = dict[tuple[int, str], state_pb2.Action]
"""The discards that are offered, by tile and what is declared with them."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An action with its key."""

    key: str
    action: state_pb2.Action
    twice: bool = False
    """It costs, and is to be pressed twice."""


@dataclass(frozen=True, slots=True)
class Offer:
    """An open prompt, sorted into what a player presses."""

    decision_id: str
    kind: str
    calls: tuple[Choice, ...] = ()
    discards: Discards = field(default_factory=dict)
    declarations: tuple[str, ...] = ()
    """What may be declared with a discard."""

    def call(self, key: str) -> Choice | None:
        """The call that a key stands for."""
        return next((choice for choice in self.calls if choice.key == key), None)

    def may_discard(self, tile: int, declare: str = "") -> bool:
        """Whether a tile can be discarded with that declared."""
        return (tile, declare) in self.discards


def offer_of(prompt: events_pb2.Prompt, declare: str = "") -> Offer:
    """A prompt sorted out. `declare`: what the player wants declared with a kong, if he may."""
    discards = {
        (action.tile, action.declare): action
        for action in prompt.actions
        if action.kind == "discard"
    }
    calls: list[Choice] = []
    others = [action for action in prompt.actions if action.kind != "discard"]
    for kind in dict.fromkeys(action.kind for action in others):
        of_kind = [action for action in others if action.kind == kind]
        if kind == "kong":
            # With and without a declaration are one key; which of them is meant is chosen before.
            wanted = [action for action in of_kind if action.declare == declare]
            of_kind = wanted or [action for action in of_kind if not action.declare] or of_kind
        keys = "123456789" if kind == "piao" else CALL_KEYS.get(kind, "uiyo")
        calls += [
            Choice(key, action, twice=kind == "false_win")
            for key, action in zip(keys, of_kind, strict=False)
        ]
    order = {kind: place for place, kind in enumerate(CALL_KEYS)}
    calls.sort(key=lambda choice: order.get(choice.action.kind, 0))
    declarations = dict.fromkeys(action.declare for action in prompt.actions if action.declare)
    return Offer(prompt.decision_id, prompt.kind, tuple(calls), discards, tuple(declarations))


def in_order(seat: SeatView) -> list[int]:
    """The own hand as it stands: sorted, the tile just drawn the last."""
    if seat.drawn is None or seat.drawn not in seat.concealed:
        return sorted(seat.concealed)
    rest = list(seat.concealed)
    rest.remove(seat.drawn)
    return [*sorted(rest), seat.drawn]


def declared_name(rules_id: str, declared: str, say: Tongue) -> str:
    """What was or may be declared, as its rule set calls it."""
    try:
        found = rule_set(rules_id).declarations.get(declared)
    except RulesError:
        found = None
    return say(found.name_zh, found.name_en) if found else declared.replace("_", " ")


def told(action: state_pb2.Action, say: Tongue, rules_id: str = "") -> str:
    """An action in words: `碰 五饼`, `chi 3m 4m 5m`."""
    declare = f" {declared_name(rules_id, action.declare, say)}" if action.declare else ""
    match action.kind:
        case "discard":
            return say("打 ", "discard ") + say.spoken(action.tile) + declare
        case "chi":
            tiles: Sequence[int] = sorted([*action.tiles, action.tile])
            return say("吃 ", "chi ") + say.list(tiles)
        case "pong":
            return say("碰 ", "pong ") + say.spoken(action.tile)
        case "kong":
            zh, en = MELD_NAMES.get(action.meld, ("杠", "kong"))
            return f"{say(zh, en)} {say.spoken(action.tile)}{declare}"
        case "win":
            return say("胡", "win") + (f" {say.spoken(action.tile)}" if action.tile else "")
        case "pass":
            return say("过", "pass")
        case "false_win":
            return say("诈胡", "call a win without one")
        case "piao":
            return (
                say("飘 ", "piao ") + str(action.amount) if action.amount else say("不飘", "none")
            )
        case "ready":
            return say("准备", "ready")
        case other:
            return other.replace("_", " ")
