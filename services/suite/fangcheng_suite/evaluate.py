"""`fangcheng evaluate`: what a hand is worth, in this process, without any service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from fangcheng_rules import notation, tiles
from fangcheng_rules.analysis import Analysis, DiscardChoice, Wait, analyze
from fangcheng_rules.errors import InvalidNotation, RulesError
from fangcheng_rules.hand import Hand
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.ruleset import OptionValue, RuleSet

from . import render
from .chosen import options_given, rules_named
from .errors import SuiteError
from .render import Ink

INDENT = "  "
MOST_DISCARDS = 5

TILES_HINT = (
    "Tiles are numbers and their suit, 123m (characters), 456p (dots), 789s (bamboo), 1234567z "
    "(east south west north white green red); or Chinese, or Unicode's tiles."
)
EIGHT_FLOWERS_HINT = "Flowers are 1f to 8f, or 春夏秋冬梅兰竹菊: `--flowers 12f`."
FLOWERS_HINT = "Flowers are laid down beside the hand: `--flowers 12f`."
HAND_HINT = (
    "A hand has 13 or 14 tiles, each meld counted as three: "
    f"`fangcheng evaluate 123m45678s --melds 'pong 555z' --melds 'chi 123p'`. {FLOWERS_HINT}"
)

_MELD_KINDS = {
    **{kind.value.replace("_", " "): kind for kind in MeldKind},
    **{render.MELD_NAMES[kind.value][0]: kind for kind in MeldKind},
}


@dataclass(frozen=True, slots=True)
class Question:
    """A hand to evaluate, as the words of the command line said it."""

    rules: RuleSet
    options: dict[str, OptionValue]
    hand: Hand
    flowers: tuple[int, ...] = ()


def ask(
    rules_id: str, hand: str, melds: Sequence[str], options: Sequence[str], flowers: str = ""
) -> Question:
    """Understand the command line; raises SuiteError saying which word was wrong and why."""
    rules = rules_named(rules_id)
    chosen = options_given(rules, options)
    laid = tuple(_meld(text) for text in melds)
    try:
        held = Hand(notation.parse_tiles(hand), laid) if laid else notation.parse_hand(hand)
    except InvalidNotation as error:
        raise SuiteError(f"the hand: {error.message}", TILES_HINT) from None
    except RulesError as error:
        raise SuiteError(f"the hand {hand}: {error.message}", HAND_HINT) from None
    try:
        beside = notation.parse_tiles(flowers)
    except InvalidNotation as error:
        raise SuiteError(f"--flowers: {error.message}", EIGHT_FLOWERS_HINT) from None
    try:
        rules.check_tiles(held, beside)
    except RulesError as error:
        played = f"`fangcheng rules {rules.id}` tells what is played. {FLOWERS_HINT}"
        raise SuiteError(f"{rules.name_en}: {error.message}", played) from None
    return Question(rules, chosen, held, beside)


def answer(question: Question, ink: Ink) -> list[Text]:
    """The evaluation, a line each."""
    hand = question.hand
    found = analyze(question.rules, question.options, hand, progress=True, flowers=question.flowers)
    groups = [[tiles.code(kind) for kind in hand.concealed]]
    groups += [[tiles.code(kind) for kind in meld.tiles] for meld in hand.melds]
    groups += [[tiles.code(kind) for kind in question.flowers]]
    lines = [Text(question.rules.name_zh if ink.chinese else question.rules.name_en, "bold")]
    lines += render.drawn([group for group in groups if group], ink)
    if hand.size == 13:
        return lines + _thirteen(question, found, ink)
    return lines + _fourteen(question, found, ink)


def _thirteen(question: Question, found: Analysis, ink: Ink) -> list[Text]:
    if found.waits:
        return [_headed("waits on", _waits(question, found.waits, ink))]
    lines = [_headed("shanten", _distance(found.shanten))]
    if not found.shanten:
        lines.append(
            Text(f"{INDENT}The shape is ready, but no tile completes a win under these rules.")
        )
    lines.append(_headed("useful", _useful(found.useful, question.hand, ink)))
    return lines


def _fourteen(question: Question, found: Analysis, ink: Ink) -> list[Text]:
    lines: list[Text] = []
    if found.wins:
        lines.append(Text("A win.", "bold green"))
        for reading in found.readings:
            sets = Text(ink.dot).join(
                render.row([tiles.code(kind) for kind in group], ink) for group in reading.sets
            )
            lines.append(_headed(reading.shape.replace("_", " "), sets))
        lines.append(_headed("fan", _fan(question, found, ink)))
    elif found.shanten == -1:
        lines.append(Text("Complete by its shape, but no win under these rules.", "bold yellow"))
    else:
        lines.append(_headed("shanten", _distance(found.shanten)))
    for kong in found.kongs:
        word = Text(f"{render.short(tiles.code(kong.tile), ink)} ({kong.kind.replace('_', ' ')})")
        word.append("  then waits on " if kong.waits else "  then no wait")
        lines.append(_headed("kong", word.append_text(_waits(question, kong.waits, ink))))
    best = sorted(found.discards, key=lambda choice: _rank(choice, question.hand))
    for place, choice in enumerate(best[:MOST_DISCARDS]):
        lines.append(_headed("discard" if place == 0 else "", _discard(question, choice, ink)))
    return lines


def _rank(choice: DiscardChoice, hand: Hand) -> tuple[int, int, int, int]:
    """Sorts discards, the best first: legal waits, then shanten, then tiles that help."""
    left = sum(4 - held for held in (hand.held[wait.tile] for wait in choice.waits))
    helping = sum(4 - hand.held[kind] for kind in choice.useful)
    shanten = choice.shanten if choice.shanten is not None else 9
    return (0 if choice.waits else 1, -left, shanten, -helping)


def _discard(question: Question, choice: DiscardChoice, ink: Ink) -> Text:
    code = tiles.code(choice.tile)
    text = Text(f"{render.short(code, ink)}", render.style(code))
    if choice.waits:
        return text.append("  then waits on ", "not bold default").append_text(
            _waits(question, choice.waits, ink)
        )
    text.append(f"  {_distance(choice.shanten)}, useful ", "not bold default")
    return text.append_text(_useful(choice.useful, question.hand, ink))


def _waits(question: Question, waits: Sequence[Wait], ink: Ink) -> Text:
    parts = []
    for wait in waits:
        code = tiles.code(wait.tile)
        part = Text(render.short(code, ink), render.style(code))
        worth = [f"{wait.least_fan} fan"] if wait.least_fan else []  # else none, or flat
        if wait.least_units:
            worth.append(f"{wait.least_units} units")
        elif question.rules.worth is not None:
            worth = ["not on a discard"]
        if worth:
            part.append(f" ({', '.join(worth)})", "not bold dim")
        parts.append(part)
    return Text(" ").join(parts)


def _useful(kinds: Sequence[int], hand: Hand, ink: Ink) -> Text:
    left = sum(4 - hand.held[kind] for kind in kinds)
    text = render.row([tiles.code(kind) for kind in kinds], ink)
    return text.append(f"  ({left} tiles)", "not bold dim")


def _fan(question: Question, found: Analysis, ink: Ink) -> str:
    parts = []
    for item_id, fan in found.items:
        spec = question.rules.items[item_id]
        parts.append(f"{ink.both(spec.name_zh, spec.name_en)} {fan or ''}".rstrip())
    if any(fan == 0 for _, fan in found.items):
        return f"{ink.dot.join(parts)}, a fixed amount"
    total = sum(fan for _, fan in found.items)
    return f"{ink.dot.join(parts) or 'none'}  =  {total} fan by the hand alone"


def _distance(shanten: int | None) -> str:
    if shanten is None or shanten < 0:
        return "complete"
    if shanten == 0:
        return "ready by its shape"
    return f"{shanten} {'tile' if shanten == 1 else 'tiles'} away from ready"


def _headed(head: str, content: str | Text) -> Text:
    line = Text(f"{INDENT}{head:9} ", "dim")
    if isinstance(content, str):
        return line.append(content, "not dim")
    line.append("", "not dim")
    return Text.assemble(line, content)


def _meld(text: str) -> Meld:
    words = text.split()
    kind = _MELD_KINDS.get(" ".join(words[:-1]).replace("_", " ").lower())
    if kind is None:
        in_chinese = " ".join(zh for zh, _ in render.MELD_NAMES.values())
        raise SuiteError(
            f"--melds {text!r}: no kind of meld",
            "Write the kind and the tiles: 'chi 123m', 'pong 555z', 'exposed kong 1111p', "
            "'added kong 1111p', 'concealed kong 1111p', 'whirlwind 567z'; or in Chinese, "
            f"such as '碰 白白白': {in_chinese}.",
        )
    try:
        return Meld(kind, notation.parse_tiles(words[-1]))
    except InvalidNotation as error:
        raise SuiteError(f"--melds {text!r}: {error.message}", TILES_HINT) from None
    except RulesError as error:
        raise SuiteError(
            f"--melds {text!r}: {error.message}", "A chi is three in a row, a pong three alike."
        ) from None
