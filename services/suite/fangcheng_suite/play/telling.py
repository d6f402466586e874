"""What happens at a table in a line each, and how a hand ended, in the player's language."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from rich.text import Text

from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import events_pb2
from fangcheng_client.problems import Problem
from fangcheng_client.reasons import find
from fangcheng_client.view import TableView
from fangcheng_suite.render import MELD_NAMES
from fangcheng_suite.report import REASONS

from . import tiles
from .choices import declared_name
from .tiles import BAD, FAINT, GOLD, GOOD, Standing
from .tongue import CHINESE, ENGLISH, Tongue

CLOSED = {
    "hands_played": ("打完了", "all its hands are played"),
    "player_left": ("有人离开", "a player left"),
    "escape": ("有人逃跑", "a player left in the middle of a hand"),
    "bankrupt": ("有人输光", "a player cannot pay"),
    "not_ready": ("有人没准备", "a player was not ready"),
    "removed": ("有人被请出", "an operator removed a player"),
    "dissolved": ("大家同意散桌", "all agreed to"),
    "closed": ("被管理员关闭", "an operator closed it"),
    "deserted": ("没有人在", "nobody was there"),
}
"""Why a table has closed."""


def news(event: events_pb2.TableEvent, view: TableView, say: Tongue) -> list[Text]:
    """An event, which `view` has seen, in a line for the player; nothing where there is none."""
    kind = event.WhichOneof("kind")
    names = [seat.name for seat in view.seats]
    match kind:
        case "hand_started":
            number = event.hand_started.hand_number
            dealer = names[event.hand_started.dealer]
            text = say(f"第 {number} 局，{dealer} 坐庄", f"Hand {number}, {dealer} deals")
            return [Text(text, f"bold {GOLD}")]
        case "drawn" if event.drawn.tile:
            line = Text(say(f"{names[event.drawn.seat]} 摸 ", f"{names[event.drawn.seat]} draws "))
            return [line.append(say.spoken(event.drawn.tile), "bold")]
        case "discarded":
            discarded = event.discarded
            who = names[discarded.seat]
            line = Text(say(f"{who} 打 ", f"{who} discards "))
            line.append(say.spoken(discarded.tile), "bold")
            if discarded.declared:
                declared = declared_name(view.rules.id, discarded.declared, say)
                line.append(f" {declared}", f"bold {GOLD}")
            return [line]
        case "melded":
            meld = event.melded.meld
            zh, en = MELD_NAMES.get(meld.kind, ("", meld.kind.replace("_", " ")))
            line = Text(f"{names[event.melded.seat]} ").append(say(zh, en), f"bold {GOLD}")
            return [line.append(f" {say.list(meld.tiles)}" if any(meld.tiles) else "")]
        case "flower_laid":
            who = names[event.flower_laid.seat]
            line = Text(say(f"{who} 补花 ", f"{who} lays a flower "))
            return [line.append(say.spoken(event.flower_laid.tile), "bold")]
        case "treasure_turned" if event.treasure_turned.tile:
            tile = say.spoken(event.treasure_turned.tile)
            return [Text(say(f"宝牌 {tile}", f"The treasure is {tile}"), f"bold {GOLD}")]
        case "kong_robbed":
            who, tile = names[event.kong_robbed.seat], say.spoken(event.kong_robbed.tile)
            return [Text(say(f"{who} 的 {tile} 被抢", f"{who} is robbed of {tile}"), GOLD)]
        case "false_win_called":
            who = names[event.false_win_called.seat]
            return [Text(say(f"{who} 诈胡", f"{who} calls a win that is none"), BAD)]
        case "trustee_changed":
            changed = event.trustee_changed
            who = names[changed.seat]
            if changed.trustee:
                return [Text(say(f"{who} 托管", f"The table plays for {who}"), FAINT)]
            return [Text(say(f"{who} 自己打了", f"{who} plays again"), FAINT)]
        case "connection_changed":
            change = event.connection_changed
            who = names[change.seat]
            if change.seat == view.own_seat:
                return []
            text = say(f"{who} 来了", f"{who} is here") if change.connected else ""
            return [Text(text or say(f"{who} 离线", f"{who} is away"), FAINT)]
        case "leave_announced":
            who = names[event.leave_announced.seat]
            return [Text(say(f"{who} 打完这局离开", f"{who} leaves after this hand"), FAINT)]
        case "hand_ended":
            return [Text(headline(view, event.hand_ended, say), f"bold {GOLD}")]
        case "operator_acted":
            return [Text(say("管理员：", "An operator: ") + event.operator_acted.reason, GOLD)]
        case "player_seated":
            who = event.player_seated.seat.player_id
            return [Text(say(f"{who} 入座", f"{who} sits down"), FAINT)]
        case _:
            return []


def headline(view: TableView, ended: events_pb2.HandEnded, say: Tongue) -> str:
    """How a hand ended, in a sentence."""
    hand = ended.hand
    names = [seat.name for seat in view.seats]
    match hand.WhichOneof("end"):
        case "win":
            win = hand.win
            who = say("、", " and ").join(names[seat] for seat in win.winners)
            tile = say.spoken(win.tile)
            if win.by == "discard":
                source = names[win.from_seat]
                return say(f"{who} 胡 {tile}，{source} 点炮", f"{who} won on {source}'s {tile}")
            if win.by == "rob_kong":
                source = names[win.from_seat]
                return say(
                    f"{who} 抢 {source} 的杠胡 {tile}",
                    f"{who} won by robbing {source}'s kong of {tile}",
                )
            if win.on_deal:
                return say(f"{who} 天胡", f"{who} won on the tiles dealt")
            return say(f"{who} 自摸 {tile}", f"{who} won by drawing {tile}")
        case "draw":
            return say("荒庄：牌摸完了，没人胡", "Drawn hand: the wall is gone, nobody has won")
        case "eight_flowers":
            who = names[hand.eight_flowers.seat]
            return say(f"{who} 八花齐，胡", f"{who} has all the flowers, which wins")
        case "escape":
            who = names[hand.escape.seat]
            return say(f"{who} 逃跑，本局结束", f"{who} left for good, which ends the hand")
        case _:
            return say("本局作废", "The hand was dissolved")


def result(view: TableView, say: Tongue, columns: int) -> list[Text]:
    """The hand that has ended: who won with what, what it counts, who pays whom."""
    ended = view.ended
    if ended is None:
        return []
    lines = [Text(headline(view, ended, say), f"bold {GOLD}"), Text()]
    if ended.hand.WhichOneof("end") == "win":
        for winner in ended.score.winners:
            lines += _winner(view, ended.hand, winner, ended.score.losers, say, columns)
    lines += _payments(view, ended, say)
    return lines


def _winner(
    view: TableView,
    hand: rules_pb2.FinishedHand,
    winner: rules_pb2.WinnerScore,
    losers: Iterable[rules_pb2.LoserScore],
    say: Tongue,
    columns: int,
) -> list[Text]:
    seat = hand.seats[winner.seat]
    tile = hand.win.tile
    standing = [Standing(one) for one in sorted(seat.concealed)]
    standing.append(Standing(tile, apart=True))
    picture = tiles.hand(standing, say)[1:4]
    for line, part in zip(picture, tiles.laid([one.tiles for one in seat.melds], say), strict=True):
        line.append_text(part)
    lines = []
    if len(hand.win.winners) > 1:
        lines.append(Text(view.seats[winner.seat].name, "bold"))
    if max(line.cell_len for line in picture) > columns:
        strip = tiles.river([*sorted(seat.concealed), tile], say, 14, 1, lit=True)
        melds = [tiles.strip(one.tiles, say) for one in seat.melds]
        picture = [*strip, Text(" ").join(melds)]
    lines += [*picture, Text()]
    if seat.flowers:
        flowers = say.list(seat.flowers)
        lines.append(Text(say("花  ", "Flowers  "), FAINT).append(flowers, "#e7a3ff"))
    items = say("  ", ", ").join(say.item(item) for item in winner.items)
    worth = (
        say(f"{winner.flat} 分", f"{winner.flat} units")
        if winner.flat
        else say(f"{winner.fan} 番", f"{winner.fan} fan")
    )
    if items or winner.flat or not winner.flower_points:
        lines.append(Text(f"{items}  =  " if items else "").append(worth, f"bold {GOLD}"))
    if winner.flower_points or winner.multiplier > 1:
        text = say(f"花 {winner.flower_points} 分", f"{winner.flower_points} flower points")
        if winner.multiplier > 1:
            text += say(f"，全部 ×{winner.multiplier}", f", all ×{winner.multiplier}")
        lines.append(Text(text, FAINT))
    for loser in losers:
        if loser.winner != winner.seat or not (loser.amount or loser.items):
            continue
        who = view.seats[loser.seat].name
        line = Text(say(f"{who} 付 {loser.amount} 分", f"{who} pays {loser.amount}"), "")
        more = [say.item(item) for item in loser.items]
        if loser.multiplier > 1:
            more.append(f"×{loser.multiplier}")
        if loser.capped:
            more.append(say("封顶", "capped"))
        if more:
            line.append("  " + say("  ", ", ").join(more), FAINT)
        lines.append(line)
    lines.append(Text())
    return lines


def _payments(view: TableView, ended: events_pb2.HandEnded, say: Tongue) -> list[Text]:
    """What each seat has won and lost by the hand, what for, and at the table."""
    by_reason: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for transfer in ended.score.transfers:
        if transfer.HasField("from_seat"):
            by_reason[transfer.reason][transfer.from_seat] -= transfer.amount
        if transfer.HasField("to_seat"):
            by_reason[transfer.reason][transfer.to_seat] += transfer.amount
    lines = []
    if set(by_reason) - {"win"}:
        for reason, net in by_reason.items():
            zh, en = REASONS.get(reason, ("", reason))
            lines.append(_nets(view, say(zh, en), net, say, FAINT))
    lines.append(_nets(view, say("本局", "This hand"), list(ended.net), say, "bold"))
    standings = [seat.standing for seat in view.seats]
    lines.append(_nets(view, say("总计", "In all"), standings, say, "bold"))
    if view.settled is not None and view.stakes:
        stake = view.stakes[0]
        paid = sum(p.due - p.paid for p in view.settled.payments if p.currency == stake.currency)
        if paid:
            text = say(f"有 {paid:,} {stake.currency} 付不出", f"{paid:,} {stake.currency} unpaid")
            lines.append(Text(text, BAD))
    return lines


LABEL_COLUMNS, NET_COLUMNS = 20, 13
"""Of a line with the four seats, which fits a card on 80 columns."""


def _nets(view: TableView, label: str, net: Sequence[int], say: Tongue, style: str) -> Text:
    head = Text(label, style)
    head.truncate(LABEL_COLUMNS, pad=True)
    for seat, amount in zip(view.seats, net, strict=True):
        colour = GOOD if amount > 0 else BAD if amount < 0 else FAINT
        told = say.signed(amount)
        name = Text(seat.name)
        name.truncate(max(NET_COLUMNS - len(told) - 2, 1), overflow="ellipsis")
        part = name.append(" ").append(told, colour)
        part.truncate(NET_COLUMNS, pad=True)
        head.append_text(part)
    return head


def refusal(problem: Problem, say: Tongue) -> tuple[str, str]:
    """Why a service refuses, and what to do about it."""
    known = find(problem.reason, problem.code)
    if known is None:
        return f"{problem.message} [{problem.reason}]", ""
    text = known.text(CHINESE if say.chinese else ENGLISH)
    return f"{text.message} [{problem.reason}]", text.cure


def ranking(view: TableView, say: Tongue) -> list[Text]:
    """How the table ended."""
    closed = view.closed
    if closed is None:
        return []
    zh, en = CLOSED.get(closed.reason, ("", closed.reason.replace("_", " ")))
    title = say(f"牌桌散了：{say(zh, en)}", f"The table has closed: {say(zh, en)}")
    lines = [Text(title, f"bold {GOLD}"), Text()]
    for rank in closed.ranking:
        name = view.seats[rank.seat].name
        mine = rank.seat == view.own_seat
        line = Text(f"  {rank.place}.  ", "bold")
        line.append(name, f"bold {GOLD}" if mine else "bold")
        line.truncate(24, pad=True)
        colour = GOOD if rank.standing > 0 else BAD if rank.standing < 0 else FAINT
        lines.append(line.append(say.signed(rank.standing), f"bold {colour}"))
    return lines
