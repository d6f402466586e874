"""The table as lines of text, for any size from 80 by 24 on. A pure function of the scene.

::

    title: rules, hand, wall, treasure                      connection
              opposite: name, hand, melds, river
    left: …            last discard, what happened         right: …
              own river
    own name, flowers
    own hand, drawn as tiles, with keys; melds
    the question, the time left
    what may be answered, with keys
    a hint, or what went wrong
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from rich.style import Style
from rich.text import Text

from fangcheng_client.view import SeatView, TableView
from fangcheng_rules.errors import RulesError
from fangcheng_rules.rulesets import rule_set

from . import tiles
from .choices import DECLARE_KEY, DRAWN_KEY, PASS, TILE_KEYS, Offer, declared_name, in_order, told
from .tiles import BAD, FAINT, GOLD, GOOD, RAISED_FELT, Standing
from .tongue import Tongue

LEAST_COLUMNS, LEAST_ROWS = 80, 24
LOG_FROM_COLUMNS = 116
"""From this width on, what happened stands in a column of its own."""
LOG_COLUMNS = 34
SIDE_COLUMNS = 26
MORE_MIDDLE_ROWS = 5

Lines = list[Text]


@dataclass(slots=True)
class Scene:
    """All that is on the screen."""

    say: Tongue
    view: TableView
    offer: Offer | None = None
    selected: int = 0
    """The place in the own hand that the arrows have come to."""
    declare: str = ""
    """What the next discard or kong is to declare."""
    sure_of: str = ""
    """The key of a call that costs and was pressed once."""
    sent: bool = False
    """The prompt has been answered; nothing has come of it yet."""
    ms_left: int = 0
    reserve_ms_left: int = 0
    ms_given: int = 1
    """What the prompt began with."""
    news: list[Text] = field(default_factory=list)
    """What happened, newest last."""
    hint: list[Text] = field(default_factory=list)
    starred: frozenset[int] = frozenset()
    """The tiles that the hint would discard."""
    note: str = ""
    """What went wrong, or came of a key."""
    trouble: str = ""
    """The connection is broken: what is done about it."""


def drawn(scene: Scene, columns: int, rows: int) -> Lines:
    """The whole screen, exactly so many lines of so many columns."""
    if columns < LEAST_COLUMNS or rows < LEAST_ROWS:
        return _too_small(scene, columns, rows)
    board_columns = columns
    if columns >= LOG_FROM_COLUMNS:
        board_columns = columns - LOG_COLUMNS - 1
    lines = [
        _title(scene, columns),
        *(
            _beside_news(scene, board_columns, rows - 5)
            if board_columns < columns
            else _table(scene, board_columns, rows - 5)
        ),
        *_question(scene, columns),
    ]
    lines.append(_footer(scene, columns))
    return [fitted(line, columns) for line in lines]


def fitted(line: Text, columns: int) -> Text:
    """A line of exactly so many columns."""
    out = line.copy()
    out.truncate(columns, overflow="ellipsis", pad=True)
    return out


def rules_name(rules_id: str, say: Tongue) -> str:
    """What a rule set is called."""
    try:
        known = rule_set(rules_id)
    except RulesError:
        return rules_id
    return say(known.name_zh, known.name_en)


def _too_small(scene: Scene, columns: int, rows: int) -> Lines:
    say = scene.say
    text = say(
        f"窗口太小：{columns}×{rows}，至少要 {LEAST_COLUMNS}×{LEAST_ROWS}。",
        f"This window is {columns}×{rows}; make it {LEAST_COLUMNS}×{LEAST_ROWS}.",
    )
    lines = [Text(text, f"bold {GOLD}"), *(Text() for _ in range(rows - 1))]
    return [fitted(line, columns) for line in lines]


def _beside(left: Text, columns: int, right: Text) -> Text:
    return fitted(left, columns).append_text(right)


def _title(scene: Scene, columns: int) -> Text:
    view, say = scene.view, scene.say
    line = Text(" 方城 ", f"bold {GOLD}")
    line.append(rules_name(view.rules.id, say), "bold")
    if view.hand_number:
        of = f"/{view.hands}" if view.hands else ""
        line.append(say(f"  第 {view.hand_number}{of} 局", f"  hand {view.hand_number}{of}"))
        line.append(say(f"  余 {view.wall_tiles} 张", f"  {view.wall_tiles} tiles left"))
    if view.started is not None and view.started.drawn_hands_before:
        count = view.started.drawn_hands_before
        line.append(say(f"  连荒 {count}", f"  {count} drawn before"), FAINT)
    if view.treasure:
        line.append(say("  宝牌 ", "  treasure ")).append_text(
            tiles.chip(view.treasure, say, tiles.LIT)
        )
    right = Text(scene.trouble and f" {scene.trouble} ", f"bold #ffffff on {tiles.ink(11)}")
    line = _beside(line, columns - right.cell_len, right)
    line.stylize(f"on {RAISED_FELT}", 0, columns - right.cell_len)
    return line


def _beside_news(scene: Scene, columns: int, rows: int) -> Lines:
    """The table, and what happened in a column beside it."""
    news = [*scene.hint, *([Text()] if scene.hint else [])]
    room = max(rows - 1 - len(news), 0)
    news = [Text(scene.say("牌局", "The game"), f"bold {GOLD}"), *news, *scene.news[-room:]]
    news += [Text() for _ in range(rows - len(news))]
    table = _table(scene, columns, rows, own_news=False)
    bar = Text("│", FAINT)
    return [
        _beside(line, columns, bar.copy().append_text(Text(" ").append_text(told)))
        for line, told in zip(table, news[:rows], strict=True)
    ]


def _table(scene: Scene, columns: int, rows: int, *, own_news: bool = True) -> Lines:
    view, say = scene.view, scene.say
    own = view.own_seat or 0
    right, across, left = ((own + step) % 4 for step in (1, 2, 3))
    side = max(SIDE_COLUMNS, min((columns - 28) // 2, 42))
    per_row = (columns - 2 * side) // 4 + 6
    spare = rows - 19
    """Lines beyond what 80 by 24 has: some for rivers, the others are air."""
    more = min(spare // 2, MORE_MIDDLE_ROWS)
    air = [(spare - more + place) // 3 for place in range(3)]

    lines = [Text() for _ in range(air[0])]
    lines += _across(scene, across, side, per_row)
    lines += [Text() for _ in range(air[1])]
    lines += _middle(scene, left, right, columns, side, 7 + more, own_news=own_news)
    lines += [Text() for _ in range(air[2])]
    lying = view.last_discard is not None and view.last_discard[0] == own
    for line in tiles.river(view.seats[own].river, say, per_row, 2, lit=lying):
        lines.append(Text(" " * side).append_text(line))
    lines += _own(scene, own, columns)
    return lines


def _middle(
    scene: Scene, left: int, right: int, columns: int, side: int, rows: int, *, own_news: bool
) -> Lines:
    centre = columns - 2 * side
    lefts = _side(scene, left, side, rows)
    rights = _side(scene, right, side, rows)
    centres = _centre(scene, rows, own_news=own_news)
    return [
        _beside(one, side, fitted(two, centre)).append_text(three)
        for one, two, three in zip(lefts, centres, rights, strict=True)
    ]


def _name(scene: Scene, number: int) -> Text:
    """Whose seat it is, and all that is to be known of it at a glance."""
    view, say = scene.view, scene.say
    seat = view.seats[number]
    is_turn = view.turn == number
    line = Text(" ▶" if is_turn else "  ", f"bold {GOLD}")
    if view.hand_number:
        is_dealer = number == view.dealer
        wind = say.wind(number, view.dealer)
        line.append(f"{wind} ", f"bold {GOLD}" if is_dealer else "bold")
    line.append(seat.name or say("空位", "empty seat"), f"bold {GOLD}" if is_turn else "bold")
    line.append(f" {say.signed(seat.standing)}", _money_style(seat.standing))
    for text, style in _states(scene, number, seat):
        line.append(" ").append(text, style)
    return line


def _states(scene: Scene, number: int, seat: SeatView) -> list[tuple[str, str]]:
    view, say = scene.view, scene.say
    states: list[tuple[str, str]] = []
    if view.hand_number and number == view.dealer:
        states.append((say("庄", "dealer"), GOLD))
    if seat.declared:
        declared = declared_name(view.rules.id, seat.declared, say)
        states.append((f" {declared} ", f"bold #24242b on {GOLD}"))
    if seat.piao:
        states.append((say(f"飘{seat.piao}", f"piao {seat.piao}"), GOLD))
    if seat.false_wins:
        states.append((say("诈胡", "false win"), BAD))
    if seat.trustee:
        states.append((say("托管", "auto"), BAD))
    elif seat.player_id and not seat.connected:
        states.append((say("离线", "away"), BAD))
    if seat.leaving:
        states.append((say("局后离开", "leaving"), FAINT))
    if seat.ready and view.ready_check:
        states.append((say("已准备", "ready"), GOOD))
    return states


def _money_style(amount: int) -> str:
    return GOOD if amount > 0 else BAD if amount < 0 else FAINT


def _held(scene: Scene, seat: SeatView) -> Text:
    """The concealed tiles of another: backs, or faces where they are shown."""
    if any(seat.concealed):
        return _spaced(tiles.chip(tile, scene.say) for tile in sorted(seat.concealed))
    count = len(seat.concealed)
    if not count:
        return Text()
    return Text("▮" * count, tiles.BACK).append(f" {count}", FAINT)


def _laid(scene: Scene, seat: SeatView) -> Text:
    return _spaced(tiles.strip(meld.tiles, scene.say) for meld in seat.melds)


def _flowers(scene: Scene, seat: SeatView) -> Text:
    if not seat.flowers:
        return Text()
    # They need no tile's width: what counts is which and how many.
    signs = " ".join(scene.say.mark(tile) for tile in seat.flowers)
    return Text("✿ ", "#e7a3ff").append(signs, "#e7a3ff")


def _spaced(parts: Iterable[Text]) -> Text:
    return Text(" ").join(parts)


def _across(scene: Scene, number: int, inset: int, per_row: int) -> Lines:
    """The seat across: four lines."""
    seat = scene.view.seats[number]
    name = _name(scene, number)
    if seat.flowers:
        name.append("  ").append_text(_flowers(scene, seat))
    second = _held(scene, seat)
    if seat.melds:
        second.append("  ").append_text(_laid(scene, seat))
    lying = scene.view.last_discard is not None and scene.view.last_discard[0] == number
    rows = tiles.river(seat.river, scene.say, per_row, 2, lit=lying)
    indent = " " * inset
    return [Text(indent[:-2]).append_text(name)] + [
        Text(indent).append_text(line) for line in (second, *rows)
    ]


def _side(scene: Scene, number: int, columns: int, rows: int) -> Lines:
    """A seat at a side: its name, hand, melds and river."""
    seat = scene.view.seats[number]
    held = _held(scene, seat)
    lines = [_name(scene, number)]
    if held.cell_len + 2 > columns:  # shown, and too long for a line
        half = columns // 4 * 4 - 4
        lines += [Text("  ").append_text(part) for part in held.divide([half])]
    else:
        lines.append(Text("  ").append_text(held))
    flowers = _flowers(scene, seat)
    if flowers.cell_len:
        if lines[-1].cell_len + flowers.cell_len + 2 <= columns and len(lines) == 2:
            lines[-1].append("  ").append_text(flowers)
        else:
            lines.append(Text("  ").append_text(flowers))
    if seat.melds:
        laid = _laid(scene, seat)
        if laid.cell_len + 2 <= columns:
            lines.append(Text("  ").append_text(laid))
        else:
            for half_melds in (seat.melds[:2], seat.melds[2:]):
                strips = [tiles.strip(meld.tiles, scene.say) for meld in half_melds]
                lines.append(Text("  ").append_text(_spaced(strips)))
    room = rows - len(lines)
    lying = scene.view.last_discard is not None and scene.view.last_discard[0] == number
    for row in tiles.river(seat.river, scene.say, (columns - 2) // 4, room, lit=lying):
        lines.append(Text("  ").append_text(row))
    return [fitted(line, columns) for line in lines[:rows]]


def _centre(scene: Scene, rows: int, *, own_news: bool) -> Lines:
    """The last discard as a whole tile, and what happened; or the hint."""
    view, say = scene.view, scene.say
    if scene.hint and own_news:
        lines = [Text(" ").append_text(line) for line in scene.hint[:rows]]
        return lines + [Text() for _ in range(rows - len(lines))]
    lines = [Text()]
    lying = view.last_discard
    if lying is not None:
        seat, tile = lying
        one = tiles.hand([Standing(tile)], say)[1:4]
        beside = (
            Text(f"  {view.seats[seat].name}", "bold"),
            Text(say("  打出 ", "  discards ") + say.spoken(tile)),
            Text(),
        )
        lines += [
            Text("   ").append_text(face).append_text(words)
            for face, words in zip(one, beside, strict=True)
        ]
    if own_news:
        room = rows - len(lines)
        lines += [Text(" ").append_text(line) for line in scene.news[-room:]]
    lines += [Text() for _ in range(rows - len(lines))]
    return lines[:rows]


def _own(scene: Scene, own: int, columns: int) -> Lines:
    """The own name, and the hand as tiles with keys below: six lines."""
    view, say = scene.view, scene.say
    seat = view.seats[own]
    name = _name(scene, own)
    if seat.flowers:
        name.append("  ").append_text(_flowers(scene, seat))
    standing = standing_hand(scene)
    hand = tiles.hand(standing, say)
    laid = tiles.laid([meld.tiles for meld in seat.melds if any(meld.tiles)], say)
    for line, part in zip(hand[1:4], laid, strict=True):
        line.append_text(part)
    width = max(line.cell_len for line in hand)
    indent = " " * max((columns - width) // 2, 1)
    return [name, *(Text(indent).append_text(line) for line in hand)]


def standing_hand(scene: Scene) -> list[Standing]:
    """The tiles of the own hand, each with its key where it can be discarded."""
    view, offer = scene.view, scene.offer
    if view.own_seat is None:
        return []
    seat = view.own
    order = in_order(seat)
    has_drawn = seat.drawn is not None and seat.drawn in seat.concealed
    standing = []
    for place, tile in enumerate(order):
        can = (
            offer is not None
            and not scene.sent
            and offer.may_discard(tile, scene.declare)
            and place < len(TILE_KEYS)
        )
        is_drawn = has_drawn and place == len(order) - 1
        standing.append(
            Standing(
                tile,
                key=(DRAWN_KEY if is_drawn else TILE_KEYS[place]) if can else "",
                choice=place if can else None,
                raised=can and place == scene.selected,
                apart=is_drawn,
                starred=can and tile in scene.starred,
            )
        )
    return standing


def _question(scene: Scene, columns: int) -> Lines:
    """What is asked, how long there is, what may be answered: three lines."""
    note = Text(f"  {scene.note}", f"bold {GOLD}")
    calls = _calls(scene, columns)
    # Calls that take both lines leave a note the place of the question, which they tell as well.
    asked = note if scene.note and len(calls) > 1 else _asked(scene)
    clock = _clock(scene)
    first = _beside(asked, columns - clock.cell_len - 1, clock)
    first.append(" ")
    first.stylize(f"on {RAISED_FELT}")
    return [first, *calls, *([note] if len(calls) == 1 else [])]


def _asked(scene: Scene) -> Text:
    view, say, offer = scene.view, scene.say, scene.offer
    if view.closed is not None:
        return Text(say("  牌桌已散", "  The table has closed"), "bold")
    if scene.sent:
        return Text(say("  已出，等结果…", "  Sent…"), FAINT)
    if offer is not None:
        style = f"bold {GOLD}"
        if scene.declare:
            name = declared_name(view.rules.id, scene.declare, say)
            return Text(
                say(f"  {name}：选要打的牌", f"  {name}: choose the tile to discard"), style
            )
        match offer.kind:
            case "turn":
                return Text(say("  轮到你了：打哪一张？", "  Your turn: which tile goes?"), style)
            case "claim" if view.last_discard is not None:
                seat, tile = view.last_discard
                name = view.seats[seat].name
                return Text(
                    say(
                        f"  {name} 打出 {say.spoken(tile)}，要不要？",
                        f"  {name} discards {say.spoken(tile)}. Take it?",
                    ),
                    style,
                )
            case "before_deal":
                return Text(say("  飘多少？", "  How much piao do you stake?"), style)
            case _:
                return Text(say("  要不要？", "  Do you want it?"), style)
    if view.back_decision_id:
        return Text(
            say("  托管中：按 a 自己打", "  The table plays for you: press a to take over"),
            f"bold {BAD}",
        )
    if view.vote is not None:
        return Text(
            say("  有人提议散桌：y 同意，n 不同意", "  Dissolve the table? y agree, n refuse"),
            f"bold {GOLD}",
        )
    if view.ready_check and view.own_seat is not None and not view.own.ready:
        return Text(
            say("  下一局，准备好了？按 r", "  Ready for the next hand? Press r"), f"bold {GOLD}"
        )
    if view.turn is not None:
        name = view.seats[view.turn].name
        return Text(say(f"  等 {name} 出牌…", f"  {name} is thinking…"), FAINT)
    if view.ended is not None:
        return Text(say("  下一局马上开始…", "  The next hand is about to begin…"), FAINT)
    return Text(say("  稍等…", "  A moment…"), FAINT)


CLOCK_COLUMNS = 16


def _clock(scene: Scene) -> Text:
    """The time left, as a bar and in seconds; then the reserve."""
    if scene.offer is None or scene.sent:
        return Text()
    left = max(scene.ms_left, 0)
    full = min(round(CLOCK_COLUMNS * left / max(scene.ms_given, 1)), CLOCK_COLUMNS)
    style = GOOD if left > 5_000 else BAD
    clock = Text("━" * full, style).append("━" * (CLOCK_COLUMNS - full), "#2f6b5c")
    clock.append(f" {-(-left // 1_000):>2} s", f"bold {style}")
    if scene.reserve_ms_left:
        seconds = -(-scene.reserve_ms_left // 1_000)
        clock.append(scene.say(f" +备用 {seconds} s", f" +{seconds} s reserve"), FAINT)
    return clock


def cap(key: str, label: str, *, style: str = GOLD, click: str = "") -> Text:
    """A key and what it does."""
    meta = Style(meta={"key": click or key})
    text = Text()
    text.append(f" {key} ", Style.parse(f"bold #24242b on {style}") + meta)
    text.append(f" {label}", Style.parse("bold") + meta)
    return text


CALL_STYLES = {"win": "#ff8f70", PASS: "#a9c7ba", "false_win": "#a9c7ba"}


def _calls(scene: Scene, columns: int) -> Lines:
    """What may be answered besides a discard, with keys: one line or two."""
    view, say, offer = scene.view, scene.say, scene.offer
    caps: list[Text] = []
    if offer is not None and not scene.sent:
        for choice in offer.calls:
            label = told(choice.action, say, view.rules.id)
            if choice.twice and scene.sure_of == choice.key:
                label += say("：再按一次", ": press again")
            caps.append(cap(choice.key, label, style=CALL_STYLES.get(choice.action.kind, GOLD)))
        if offer.declarations:
            names = [declared_name(view.rules.id, one, say) for one in offer.declarations]
            label = say("报", "declare ") + " / ".join(names)
            if scene.declare:
                label = say("不报了", "without")
            caps.append(cap(DECLARE_KEY, label))
    lines = [Text("  ")]
    for one in caps:
        if lines[-1].cell_len + one.cell_len + 1 > columns and len(lines) == 1:
            lines.append(Text("  "))
        lines[-1].append_text(one).append("   ")
    return lines


def _footer(scene: Scene, columns: int) -> Text:
    say = scene.say
    keys = [
        ("←→ ⏎", say("选牌出牌", "choose, discard")),
        ("h", say("提示", "hint")),
        ("s", say("上局", "last hand")),
        ("a", say("托管", "auto")),
        ("?", say("帮助", "help")),
        ("l", "English" if say.chinese else "中文"),
        ("q", say("离开", "leave")),
    ]
    line = Text(" ")
    for key, label in keys:
        meta = Style(meta={"key": key} if len(key) == 1 else {})
        line.append(f" {key}", Style.parse(f"bold {GOLD}") + meta)
        line.append(f" {label} ", Style.parse(FAINT) + meta)
    line = fitted(line, columns)
    line.stylize(f"on {RAISED_FELT}")
    return line
