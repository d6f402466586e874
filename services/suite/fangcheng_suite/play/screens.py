"""What comes up over the table: a hand's result, the final ranking, leaving, help, trouble."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from fangcheng_client.view import TableView
from fangcheng_rules.errors import RulesError
from fangcheng_rules.rulesets import rule_set

from . import telling
from .board import cap
from .tiles import FAINT, GOLD
from .tongue import Tongue

KeyLabel = tuple[str, str, str]
"""The key as Textual calls it, as it is shown, and what it does."""


class Card(ModalScreen[str]):
    """A card over the table. It is answered with the key that was pressed."""

    DEFAULT_CSS = """
    Card { align: center middle; background: #04140f 60%; }
    Card > VerticalScroll {
        width: auto; max-width: 100%; height: auto; max-height: 100%;
        padding: 1 3; background: #103f36; border: round #ffd166; scrollbar-size-vertical: 1;
    }
    Card Static { width: auto; }
    """

    def __init__(self, lines: Callable[[], Sequence[Text]], keys: Sequence[KeyLabel]) -> None:
        super().__init__()
        self._lines = lines
        self._keys = list(keys)

    def compose(self) -> ComposeResult:
        """The text, and the keys below it."""
        with VerticalScroll():
            yield Static(self._text())

    def refresh_text(self) -> None:
        """Something in it has changed."""
        if self.is_mounted:
            self.query_one(Static).update(self._text())

    @property
    def shown(self) -> str:
        """What it says, as plain text."""
        return self._text().plain

    def _text(self) -> Text:
        caps = [cap(shown, label, click=name) for name, shown, label in self._keys]
        return Text("\n").join([*self._lines(), Text(), Text("   ").join(caps)])

    def on_key(self, event: events.Key) -> None:
        """Answer with a key that it names; the others stay here, and do nothing at the table."""
        event.stop()
        names = {name for name, _, _ in self._keys}
        pressed = event.character if event.character in names else event.key
        if pressed in ("escape", "ctrl+c") and "escape" in names:
            pressed = "escape"
        elif pressed == "ctrl+c":
            pressed = "q"
        if pressed in names:
            self.dismiss(pressed)
        elif event.key in ("up", "down"):
            step = -1 if event.key == "up" else 1
            self.query_one(VerticalScroll).scroll_relative(y=step, animate=False)

    def on_click(self, event: events.Click) -> None:
        """A click on a key is that key."""
        pressed = event.style.meta.get("key")
        if pressed is not None:
            event.stop()
            self.dismiss(pressed)


def result_card(view: Callable[[], TableView], say: Tongue, columns: int) -> Card:
    """How the last hand ended."""
    keys = [("enter", "⏎", say("继续", "go on"))]
    return Card(lambda: telling.result(view(), say, columns), [*keys, ("escape", "Esc", "")][:1])


def end_card(view: TableView, say: Tongue) -> Card:
    """The table has closed."""
    return Card(
        lambda: telling.ranking(view, say),
        [("n", "n", say("再来一桌", "another table")), ("q", "q", say("结束", "quit"))],
    )


def trouble_card(message: str, hint: str, say: Tongue) -> Card:
    """It does not go on by itself."""
    lines = [Text(say("玩不下去了", "This does not work"), f"bold {GOLD}"), Text(), Text(message)]
    if hint:
        lines += [Text(), Text(hint, FAINT)]
    return Card(
        lambda: lines, [("r", "r", say("再试", "try again")), ("q", "q", say("结束", "quit"))]
    )


AFTER_HAND, NOW, KEEP, STAY = "1", "2", "3", "escape"


def leave_card(say: Tongue, *, in_hand: bool, seated: bool, keeps: bool) -> Card:
    """Whether to leave. `keeps`: the seat is there when the player comes back."""
    lines = [Text(say("要走吗？", "Leave?"), f"bold {GOLD}"), Text()]
    keys: list[KeyLabel] = []
    if not seated:
        lines.append(Text(say("还在排队；走了就不排了。", "You wait for a table; this ends it.")))
        keys.append((NOW, "2", say("不排了", "leave the queue")))
    elif in_hand:
        keys.append((AFTER_HAND, "1", say("打完这局走", "after this hand")))
        keys.append((NOW, "2", say("现在就走", "now")))
        lines += [
            Text(say("1  打完这局走：不罚。", "1  After this hand: costs nothing.")),
            Text(
                say(
                    "2  现在就走：算逃跑，按规则罚。",
                    "2  Now: an escape; you pay the rule set's penalty.",
                )
            ),
        ]
    else:
        lines.append(Text(say("两局之间，走了不罚。", "Between two hands it costs nothing.")))
        keys.append((NOW, "2", say("走", "leave")))
    if keeps and seated:
        keys.append((KEEP, "3", say("只关窗口", "close the window")))
        lines.append(
            Text(
                say(
                    "3  只关窗口：牌桌先替你打，再运行一次命令就回来。",
                    "3  Close the window: the table plays for you until you run the command again.",
                )
            )
        )
    keys.append((STAY, "Esc", say("不走", "stay")))
    return Card(lambda: lines, keys)


def help_card(rules_id: str, say: Tongue) -> Card:
    """The keys, and the fan items of the rule set."""
    rows = [
        ("1 … 9 0 - = [ ]", say("打出上面的那张牌", "discard the tile above the key")),
        (say("空格", "space"), say("打出刚摸的牌", "discard the tile just drawn")),
        ("← → ⏎", say("选一张，打出", "choose a tile, discard it")),
        (
            "w p c k x",
            say("胡 碰 吃 杠 过（几种吃法：c v b）", "win, pong, chi (also v, b), kong, pass"),
        ),
        ("t", say("报听、明楼等，再选牌", "declare, then choose the tile")),
        ("h", say("提示：差几张听，打哪张好", "a hint: how far from ready, what to discard")),
        ("a", say("托管 / 自己打", "let the table play, take the seat back")),
        ("r y n", say("准备；同意、不同意散桌", "ready; agree or refuse to dissolve the table")),
        ("s l q", say("看上局结果；换语言；离开", "last hand's result; language; leave")),
    ]
    lines = [Text(say("按键", "Keys"), f"bold {GOLD}")]
    for keys, meaning in rows:
        line = Text(keys, "bold")
        line.truncate(18, pad=True)
        lines.append(line.append(meaning))
    lines += [Text(), *_fan_table(rules_id, say)]
    return Card(lambda: lines, [("escape", "Esc", say("回去", "back"))])


def _fan_table(rules_id: str, say: Tongue) -> list[Text]:
    try:
        rules = rule_set(rules_id)
    except RulesError:
        return []
    title = say(f"{rules.name_zh}：番种", f"{rules.name_en}: fan items")
    lines = [Text(title, f"bold {GOLD}")]
    for item in rules.fan_items:
        fan = say(f"{item.fan} 番", f"{item.fan} fan") if item.fan else say("定额", "fixed")
        line = Text(fan)
        line.truncate(9, pad=True)
        line.append(say(item.name_zh, item.name_en), "bold")
        lines.append(line)
        lines.append(Text(" " * 9).append(item.meaning, FAINT)) if not say.chinese else None
    return lines
