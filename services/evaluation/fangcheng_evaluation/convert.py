"""Between the contracts and the rules.

What comes in is checked as far as the rules cannot: that a number is the code of a tile and a
word one that they know. An error names the field as its caller does: `hand.seats[2].melds[0]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import cast, get_args

from fangcheng.evaluation.v1 import evaluation_pb2
from fangcheng.rules.v1 import rules_pb2
from fangcheng_rules.analysis import Analysis, KongChoice, Reading, Wait
from fangcheng_rules.errors import InvalidHand, InvalidMeld, InvalidOption, RulesError
from fangcheng_rules.hand import Hand
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.ruleset import FanItemSpec, OptionSpec, OptionValue, RuleSet, WinBy
from fangcheng_rules.scoring import (
    Dissolved,
    Draw,
    EightFlowers,
    End,
    Escape,
    FanCount,
    FinishedHand,
    KongKind,
    Score,
    SeatEnd,
    Win,
)
from fangcheng_rules.tiles import code, from_code

# How the rules name what the contract names otherwise.
_END_FIELDS = {"source": "from_seat", "kong_source": "kong_from_seat"}


@contextmanager
def located(prefix: str) -> Iterator[None]:
    """Errors of the rules raised within name their field below this one."""
    try:
        yield
    except RulesError as error:
        error.field = f"{prefix}.{error.field}" if error.field else prefix
        raise


@contextmanager
def asked(message: evaluation_pb2.AnalyzeRequest | evaluation_pb2.ScoreRequest) -> Iterator[None]:
    """Errors of the rules raised within name the field of this request."""
    try:
        yield
    except RulesError as error:
        error.field = _request_field(error.field or "", message)
        raise


def options_from_wire(options: Mapping[str, rules_pb2.OptionValue]) -> dict[str, OptionValue]:
    """The options that are given; raises InvalidOption for one without a value."""
    given: dict[str, OptionValue] = {}
    for key, value in options.items():
        kind = value.WhichOneof("value")
        if kind is None:
            raise InvalidOption("INVALID_OPTION", f"{key} has no value", f"options.{key}")
        given[key] = getattr(value, kind)
    return given


def hand_from_wire(message: evaluation_pb2.Hand) -> Hand:
    """A hand of 13 or 14; raises InvalidTile, InvalidMeld, InvalidHand with the field."""
    with located("hand"):
        return Hand(
            _tiles(message.concealed, "concealed"),
            tuple(_meld(meld, f"melds[{at}]") for at, meld in enumerate(message.melds)),
        )


def flowers_from_wire(codes: Iterable[int]) -> tuple[int, ...]:
    """A seat's flowers; raises InvalidTile with the field."""
    return _tiles(codes, "flowers")


def finished_from_wire(message: rules_pb2.FinishedHand) -> FinishedHand:
    """A finished hand; raises InvalidTile, InvalidMeld, InvalidHand with the field."""
    with located("hand"):
        return FinishedHand(
            dealer=message.dealer,
            seats=tuple(_seat(seat, f"seats[{at}]") for at, seat in enumerate(message.seats)),
            end=_end(message),
            drawn_hands_before=message.drawn_hands_before,
            treasure=_tile_or_none(message.treasure, "treasure"),
            false_wins=tuple(message.false_wins),
        )


def analysis_to_wire(analysis: Analysis, rules: RuleSet) -> evaluation_pb2.Analysis:
    """All that was found of a hand."""
    return evaluation_pb2.Analysis(
        wins=analysis.wins,
        readings=[_reading(reading) for reading in analysis.readings],
        waits=_waits(analysis.waits),
        discards=[
            evaluation_pb2.DiscardChoice(
                tile=code(choice.tile),
                waits=_waits(choice.waits),
                shanten=choice.shanten or 0,
                useful_tiles=[code(tile) for tile in choice.useful],
                claim_kongs=_kongs(choice.claim_kongs),
            )
            for choice in analysis.discards
        ],
        kongs=_kongs(analysis.kongs),
        claim_kongs=_kongs(analysis.claim_kongs),
        shanten=analysis.shanten or 0,
        shape_shanten=analysis.shape_shanten or 0,
        useful_tiles=[code(tile) for tile in analysis.useful],
        fan_items=[_fan_item(rules.items[id], fan) for id, fan in analysis.items],
    )


def score_to_wire(score: Score, rules: RuleSet) -> rules_pb2.Score:
    """What a finished hand pays."""
    return rules_pb2.Score(
        winners=[
            rules_pb2.WinnerScore(
                seat=winner.seat,
                items=_fan_items(winner.items, rules),
                fan=winner.fan,
                flat=winner.flat or 0,
                reading=_reading(winner.reading),
                flower_points=winner.flower_points,
                multiplier=winner.multiplier,
            )
            for winner in score.winners
        ],
        losers=[
            rules_pb2.LoserScore(
                seat=loser.seat,
                winner=loser.winner,
                items=_fan_items(loser.items, rules),
                fan=loser.fan,
                amount=loser.amount,
                multiplier=loser.multiplier,
                capped=loser.capped,
            )
            for loser in score.losers
        ],
        transfers=[
            rules_pb2.Transfer(
                from_seat=transfer.source,
                to_seat=transfer.target,
                amount=transfer.amount,
                reason=transfer.reason,
            )
            for transfer in score.transfers
        ],
    )


def rule_set_to_wire(rules: RuleSet) -> rules_pb2.RuleSet:
    """A rule set as a client may show it."""
    return rules_pb2.RuleSet(
        id=rules.id,
        revision=rules.revision,
        name_zh=rules.name_zh,
        name_en=rules.name_en,
        tiles=[code(tile) for tile in sorted(rules.wall_tiles)],
        options=[_option_spec(option) for option in rules.options],
        fan_items=[
            rules_pb2.FanItemSpec(
                id=item.id,
                name_zh=item.name_zh,
                name_en=item.name_en,
                fan=item.fan,
                flat=item.is_flat,
                meaning=item.meaning,
                excludes=item.excludes,
                whose=item.whose,
            )
            for item in rules.fan_items
        ],
        titles=[
            rules_pb2.Title(
                from_points=title.from_points, name_zh=title.name_zh, name_en=title.name_en
            )
            for title in rules.titles
        ],
        declarations=[
            rules_pb2.Declaration(
                id=one.id, name_zh=one.name_zh, name_en=one.name_en, meaning=one.meaning
            )
            for one in rules.declares
        ],
        packed_options=rules.hot.options,
        ready_check=rules.ready_check,
        starts_over=rules.starts_over,
        whirlwind=rules.whirlwind,
        treasure=rules.turn_up is not None,
        piao=rules.piao_choices(rules.complete()),
        flowers_win=rules.flowers_win,
        units_of_waits=rules.worth is not None,
    )


def problem(reason: str, message: str, field: str | None) -> rules_pb2.Problem:
    """Why one item of a batch has no answer."""
    return rules_pb2.Problem(reason=reason, message=message, field=field or "")


def _request_field(
    field: str, message: evaluation_pb2.AnalyzeRequest | evaluation_pb2.ScoreRequest
) -> str:
    """The path in the request of what the rules call `field`."""
    if field.startswith("options."):
        return f"rules.{field}"
    if field.startswith(("rules.", "hand.", "flowers[")) or field == "hand":
        return field
    if field.startswith("end.") and isinstance(message, evaluation_pb2.ScoreRequest):
        name = field.removeprefix("end.")
        return f"hand.{message.hand.WhichOneof('end')}.{_END_FIELDS.get(name, name)}"
    return f"hand.{field}" if field else ""


def _tiles(codes: Iterable[int], field: str) -> tuple[int, ...]:
    return tuple(from_code(number, f"{field}[{at}]") for at, number in enumerate(codes))


def _meld(message: rules_pb2.Meld, field: str) -> Meld:
    try:
        kind = MeldKind(message.kind)
    except ValueError:
        raise InvalidMeld(
            "INVALID_MELD", f"no meld is called {message.kind!r}", f"{field}.kind"
        ) from None
    tiles = _tiles(message.tiles, f"{field}.tiles")
    claimed = _tile_or_none(message.claimed_tile, f"{field}.claimed_tile")
    try:
        return Meld(
            kind,
            tiles,
            message.from_seat if message.HasField("from_seat") else None,
            claimed,
            message.treasure,
        )
    except RulesError as error:
        error.field = field
        raise


def _seat(message: rules_pb2.SeatHand, field: str) -> SeatEnd:
    concealed = tuple(sorted(_tiles(message.concealed, f"{field}.concealed")))
    return SeatEnd(
        concealed=concealed or None,
        melds=tuple(_meld(meld, f"{field}.melds[{at}]") for at, meld in enumerate(message.melds)),
        declared=message.declared,
        piao=message.piao,
        first_discard=_tile_or_none(message.first_discard, f"{field}.first_discard"),
        flowers=_tiles(message.flowers, f"{field}.flowers"),
    )


def _tile_or_none(number: int, field: str) -> int | None:
    return from_code(number, field) if number else None


def _end(message: rules_pb2.FinishedHand) -> End:
    match message.WhichOneof("end"):
        case "win":
            return _win(message.win)
        case "draw":
            return Draw()
        case "escape":
            return Escape(message.escape.seat)
        case "dissolved":
            return Dissolved(message.dissolved.reason)
        case "eight_flowers":
            return EightFlowers(message.eight_flowers.seat)
    raise InvalidHand("INVALID_END", "the hand has not ended", "end")


def _win(message: rules_pb2.WinEnd) -> Win:
    if message.by not in get_args(WinBy):
        raise InvalidHand("INVALID_END", f"nobody wins by {message.by!r}", "win.by")
    if message.after_kong not in ("", *get_args(KongKind)):
        raise InvalidHand("INVALID_END", f"no kong is {message.after_kong!r}", "win.after_kong")
    return Win(
        winners=tuple(message.winners),
        tile=from_code(message.tile, "win.tile"),
        by=cast(WinBy, message.by),
        source=message.from_seat if message.HasField("from_seat") else None,
        after_kong=cast(KongKind, message.after_kong) if message.after_kong else None,
        kong_source=message.kong_from_seat if message.HasField("kong_from_seat") else None,
        discard_after_kong=message.discard_after_kong,
        on_deal=message.on_deal,
        after_flower=message.after_flower,
        first_round=tuple(message.first_round),
    )


def _waits(waits: Iterable[Wait]) -> list[evaluation_pb2.Wait]:
    return [
        evaluation_pb2.Wait(
            tile=code(one.tile), least_fan=one.least_fan, least_units=one.least_units
        )
        for one in waits
    ]


def _kongs(choices: Iterable[KongChoice]) -> list[evaluation_pb2.KongChoice]:
    return [
        evaluation_pb2.KongChoice(
            tile=code(choice.tile), kind=choice.kind.value, waits=_waits(choice.waits)
        )
        for choice in choices
    ]


def _reading(reading: Reading) -> rules_pb2.Reading:
    return rules_pb2.Reading(
        shape=reading.shape,
        sets=[rules_pb2.TileSet(tiles=[code(tile) for tile in tiles]) for tiles in reading.sets],
    )


def _fan_items(counts: Iterable[FanCount], rules: RuleSet) -> list[rules_pb2.FanItem]:
    return [_fan_item(rules.items[one.id], one.fan, one.count) for one in counts]


def _fan_item(spec: FanItemSpec, fan: int, count: int | None = None) -> rules_pb2.FanItem:
    if count is None:
        count = 1 if spec.is_flat else fan // spec.fan
    return rules_pb2.FanItem(
        id=spec.id, name_zh=spec.name_zh, name_en=spec.name_en, fan=fan, count=count
    )


def _option_spec(option: OptionSpec) -> rules_pb2.OptionSpec:
    message = rules_pb2.OptionSpec(
        id=option.id, name_zh=option.name_zh, meaning=option.meaning, choices=option.choices
    )
    if isinstance(option.default, bool):
        message.type = rules_pb2.OPTION_TYPE_BOOL
        message.default_value.boolean = option.default
    elif isinstance(option.default, int):
        message.type = rules_pb2.OPTION_TYPE_INTEGER
        message.default_value.integer = option.default
        message.minimum, message.maximum = option.minimum, option.maximum
    else:
        message.type = rules_pb2.OPTION_TYPE_CHOICE
        message.default_value.text = option.default
    return message
