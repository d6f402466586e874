"""Whole hands as text: moves in, events out, in `tests/golden/transcripts/*.txt`.

A transcript begins with how the hand is set up, each as `name: value`::

    rule_set: baishan_kele
    options: piao off
    dealer: 0
    drawn before: 2                (drawn hands in a row)
    hand 0: 5555m123p678s99m24s    (the dealer's fourteen; `dealer_drew` may name the drawn one)
    front: 7z 1p                   (drawn in this order after the deal)
    back: 3s                       (replacements, in this order)
    at 118: 5m 6m                  (tiles at these indices of the wall and on)
    trustees: 1 2 3

What is not said is filled up with the other tiles, shuffled in a fixed way. Then come the moves,
each line beginning with `>`; under a move stand the events it brings about. The evaluator's
questions are answered at once, and a claim window closes when nobody is asked any more, or with
`> window over`. Moves: `> 0: discard 3z ting`, as the prompts call them; `> 0: time out`,
`> 0: trustee on`, `> 0: leaves`, `> dissolve`.

`python -m tests.rules.transcripts` writes the events anew under the moves of every transcript.
Read the difference before it is committed.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from pathlib import Path

from fangcheng_rules.actions import (
    Action,
    Choose,
    Command,
    Dissolve,
    Leave,
    SetTrustee,
    TimeOut,
    WindowOver,
)
from fangcheng_rules.events import (
    AnalysisKept,
    Answered,
    Asked,
    Called,
    Dealt,
    Discarded,
    Drew,
    Event,
    FalseWinCalled,
    FlowerLaid,
    HandEnded,
    HandStarted,
    KongDeclared,
    KongDone,
    KongRobbed,
    LeaveNoted,
    PiaoShown,
    PlayEnded,
    TimedOut,
    TreasureTurned,
    TrusteeSet,
    WindowClosed,
    WinTaken,
    Withdrawn,
)
from fangcheng_rules.round import HandSetup, Round
from fangcheng_rules.rulesets import rule_set
from fangcheng_rules.scoring import FanCount, Score
from fangcheng_rules.simulate import answer
from fangcheng_rules.tiles import from_name, name
from fangcheng_rules.wall import DEALT, dealt_indices
from tests.rules.golden import FOLDER, shown, tiles

TRANSCRIPTS = FOLDER / "transcripts"


@dataclass
class Transcript:
    head: list[str] = field(default_factory=list)
    """Comments and setup, as they stand."""
    setup: dict[str, str] = field(default_factory=dict)
    moves: list[str] = field(default_factory=list)
    """The moves, and comments between them."""


def read(text: str) -> Transcript:
    transcript = Transcript()
    for line in text.splitlines():
        if line.startswith(">") or (transcript.moves and line.startswith("#")):
            transcript.moves.append(line)
        elif not transcript.moves and not line.startswith(" "):
            transcript.head.append(line)
            if line and not line.startswith("#"):
                key, _, value = line.partition(":")
                transcript.setup[key] = value.strip()
    while transcript.head and not transcript.head[-1]:
        transcript.head.pop()
    return transcript


def play(transcript: Transcript) -> tuple[str, list[Event]]:
    """The transcript with its events written anew, and these."""
    machine, told = begin(transcript.setup)
    everything = list(told)
    lines = [*transcript.head, "", *_lines(machine, told)]
    for move in transcript.moves:
        if move.startswith("#"):
            lines.append(move)
            continue
        told = do(machine, move[1:].strip())
        everything += told
        lines += [move, *_lines(machine, told)]
    return "\n".join(lines) + "\n", everything


def begin(setup: dict[str, str]) -> tuple[Round, list[Event]]:
    """Set up a hand, up to where a player is asked."""
    machine, events = Round.begin(hand_setup(setup))
    return machine, _answered(machine, list(events))


def do(machine: Round, move: str) -> list[Event]:
    """Make a move, up to where a player is asked again."""
    return _answered(machine, machine.step(_command(machine, move)))


def hand_setup(setup: dict[str, str]) -> HandSetup:
    rules = rule_set(setup["rule_set"])
    options: dict[str, object] = {}
    for part in setup.get("options", "").split(", "):
        if part:
            option, value = part.split()
            options[option] = {"on": True, "off": False}.get(value, value)
            if value.isdigit():
                options[option] = int(value)
    dealer = int(setup["dealer"])
    wall: dict[int, int] = {}
    for seat, indices in enumerate(dealt_indices(dealer)):
        hand = list(tiles(setup.get(f"hand {seat}", "")))
        if seat == dealer and "dealer_drew" in setup:
            drawn = from_name(setup["dealer_drew"])
            wall[DEALT - 1] = drawn
            if drawn in hand:
                hand.remove(drawn)
        wall.update(zip(indices, hand, strict=False))
    places = {"front": DEALT}
    places |= {key: int(key[3:]) for key in setup if key.startswith("at ")}
    for key, start in places.items():
        for step, tile in enumerate(setup.get(key, "").split()):
            wall[start + step] = from_name(tile)
    for step, tile in enumerate(setup.get("back", "").split()):
        wall[len(rules.wall_tiles) - 1 - step] = from_name(tile)
    rest = list(rules.wall_tiles)
    for placed in wall.values():
        rest.remove(placed)
    random.Random(1).shuffle(rest)
    return HandSetup(
        rule_set_id=rules.id,
        revision=rules.revision,
        options=rules.complete(options),
        hand_number=1,
        dealer=dealer,
        dice=(1,) * rules.hand_dice,
        wall=tuple(wall[i] if i in wall else rest.pop() for i in range(len(rules.wall_tiles))),
        trustees=tuple(str(seat) in setup.get("trustees", "") for seat in range(4)),
        run_outs=tuple(map(int, setup.get("run_outs", "0 0 0 0").split())),
        drawn_hands_before=int(setup.get("drawn before", "0")),
    )


def _answered(machine: Round, told: list[Event]) -> list[Event]:
    """The events, and those that follow once the evaluator has answered and windows close."""
    while True:
        questions = machine.questions()
        window = machine.window()
        if questions:
            told += machine.step(answer(machine, questions[0]))
        elif window is not None and not machine.prompts():
            told += machine.step(WindowOver(window))
        else:
            return told


def _command(machine: Round, move: str) -> Command:
    who, _, what = move.partition(":")
    what = what.strip()
    if who == "window over":
        return WindowOver(machine.window() or 0)
    if who == "dissolve":
        return Dissolve(what)
    seat = int(who)
    if what in ("trustee on", "trustee off"):
        return SetTrustee(seat, what == "trustee on")
    if what == "leaves":
        return Leave(seat)
    prompt = machine.prompts().get(seat)
    if prompt is None:
        raise ValueError(f"seat {seat} is not asked: {move}")
    if what == "time out":
        return TimeOut(seat, prompt.decision)
    offered = {words(action): action for action in prompt.actions}
    if what not in offered:
        raise ValueError(f"{move}: not among {', '.join(offered)}")
    return Choose(seat, prompt.decision, offered[what])


def words(action: Action) -> str:
    """An action as the moves call it."""
    declared = f" {action.declare}" if action.declare else ""
    tile = "" if action.tile is None else f" {name(action.tile)}"
    match action.kind:
        case "kong":
            kind = str(action.meld).removesuffix("_kong")
            return f"{kind} kong{tile}{declared}"
        case "chi":
            return f"chi{tile} with {shown(action.tiles)}"
        case "piao":
            return f"piao {action.amount}"
        case "false_win":
            return "false win"
        case _:
            return f"{action.kind}{tile}{declared}"


ORIGINS = {
    "front": "",
    "back": " from the back",
    "flower": " from the back, for the flower",
    "dealt_out": ", dealt out",
}


def _lines(machine: Round, events: list[Event]) -> list[str]:
    lines: list[str] = []
    for event in events:
        line = _line(machine, event)
        before = lines[-1] if lines else ""
        if isinstance(event, Discarded) and not event.declared:
            tile = name(event.tile)
            if before == f"  {event.seat} draws {tile}":
                lines[-1] = f"{before} and discards it"
                continue
        lines += [f"  {part}" for part in line.split("\n") if part]
    return lines


def _line(machine: Round, event: Event) -> str:
    match event:
        case HandStarted(dealer=dealer):
            return f"the hand begins, {dealer} deals"
        case Asked(seat=seat, decision=decision, kind=kind):
            return f"{seat} is asked ({kind} {decision}): {_offered(machine, event)}"
        case Answered(seat=seat, decision=decision, action=action):
            # A player's own answer stands in the move.
            return "" if decision else f"({seat} by the table: {words(action)})"
        case TimedOut(seat=seat, decision=decision):
            return f"({seat}: time is out for decision {decision})"
        case Withdrawn(seat=seat, decision=decision):
            return f"({seat}: decision {decision} is void)"
        case TrusteeSet(seat=seat, on=on, reason=reason):
            return f"{seat} is {'played by the table' if on else 'back'} ({reason})"
        case PiaoShown(units=units):
            return f"piao: {' '.join(map(str, units))}"
        case Dealt(hands=hands, dealer_drew=drew):
            rows = [f"{seat} is dealt {shown(hand)}" for seat, hand in enumerate(hands)]
            return "\n".join([*rows, f"the dealer's drawn tile is {name(drew)}"])
        case AnalysisKept(seat=seat, analysis=analysis):
            waits = " ".join(name(wait.tile) for wait in analysis.waits)
            return f"({seat} waits on {waits})" if waits else ""
        case Drew(seat=seat, tile=tile, origin=origin):
            return f"{seat} draws {name(tile)}{ORIGINS[origin]}"
        case FlowerLaid(seat=seat, tile=tile):
            return f"{seat} lays down the flower {name(tile)}"
        case TreasureTurned(index=index, tile=tile):
            if tile is None:
                return "there is no treasure any more"
            return f"the treasure is {name(tile)} (at {index})"
        case Discarded(seat=seat, tile=tile, declared=declared, shown=hand):
            all_see = f", showing {shown(hand)}" if hand else ""
            return f"{seat} discards {name(tile)}{_and_declares(declared)}{all_see}"
        case Called(seat=seat, meld=meld):
            taken = f"{meld.kind} {shown(meld.tiles)}".replace("_", " ")
            return f"{seat} takes it: {taken} from {meld.source}"
        case KongDeclared(seat=seat, tile=tile, kind=meld_kind, declared=declared):
            laid = f"{meld_kind} {name(tile)}".replace("_", " ")
            return f"{seat} would lay down {laid}{_and_declares(declared)}"
        case KongDone(seat=seat, kind=meld_kind, tile=tile):
            return f"{seat} has {meld_kind} {name(tile)}".replace("_", " ")
        case KongRobbed(seat=seat, tile=tile):
            return f"the {name(tile)} of {seat} is robbed: no kong"
        case FalseWinCalled(seat=seat):
            return f"{seat} calls a win that it does not have"
        case WindowClosed():
            return ""
        case LeaveNoted(seat=seat):
            return f"({seat} leaves, a claim to win is pending)"
        case WinTaken(end=end):
            who = " and ".join(map(str, end.winners))
            verb = "wins" if len(end.winners) == 1 else "win"
            return f"{who} {verb} on {name(end.tile)} ({end.by})"
        case PlayEnded(end=ended):
            ending = re.sub("(?<=[a-z])(?=[A-Z])", " ", type(ended).__name__)
            return f"the hand ends: {ending.lower()}"
        case HandEnded(score=score):
            return _settlement(score)


def _and_declares(declared: str) -> str:
    return f" and declares {declared}" if declared else ""


def _offered(machine: Round, event: Asked) -> str:
    """What is offered; discards without a declaration are not told apart."""
    parts: list[str] = []
    declared: dict[str, list[str]] = {}
    for action in machine.prompts()[event.seat].actions:
        if action.kind != "discard":
            parts.append(words(action))
        elif action.tile is not None:
            declared.setdefault(action.declare, []).append(name(action.tile))
    plain = declared.pop("", None)
    for how, those in declared.items():
        if len(those) > 3:
            parts.append(f"discard {' '.join(those)} {how}")
        else:
            parts += [f"discard {tile} {how}" for tile in those]
    if plain:
        # What may be chosen of the hand, or what may not (过牌).
        kept = {*machine.seats[event.seat].concealed} - {from_name(tile) for tile in plain}
        parts.append(f"discards but {shown(sorted(kept))}" if kept else "discards")
    return ", ".join(parts)


def _settlement(score: Score) -> str:
    rows = []
    for winner in score.winners:
        flat = "" if winner.flat is None else f", {winner.flat} flat"
        points = f", flower points {winner.flower_points}" if winner.flower_points else ""
        times = f", times {winner.multiplier}" if winner.multiplier > 1 else ""
        rows.append(f"{winner.seat} counts {_items(winner.items)}{flat}{points}{times}")
    for loser in score.losers:
        if not loser.amount and not loser.items:
            continue
        whose = f" of {loser.winner}" if len(score.winners) > 1 else ""
        times = f", times {loser.multiplier}" if loser.multiplier > 1 else ""
        rows.append(
            f"{loser.seat} pays {loser.amount} for the win{whose}: "
            f"{_items(loser.items)} more{times}"
        )
    rows += [
        f"{'the house' if t.source is None else t.source} pays "
        f"{'the house' if t.target is None else t.target} {t.amount} ({t.reason})"
        for t in score.transfers
        if t.reason != "win"
    ]
    house = f", the house {score.house}" if score.house else ""
    return "\n".join([*rows, f"together {' '.join(map(str, score.net))}{house}"])


def _items(items: tuple[FanCount, ...]) -> str:
    return ", ".join(f"{item.id} {item.fan}" for item in items) or "nothing"


def files() -> list[Path]:
    return sorted(TRANSCRIPTS.glob("*.txt"))


if __name__ == "__main__":
    for file in files():
        text = play(read(file.read_text(encoding="utf-8")))[0]
        file.write_text(text, encoding="utf-8")
