"""A finished hand in words."""

from __future__ import annotations

from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import events_pb2
from fangcheng_client.view import SeatView, TableView
from fangcheng_rules.rulesets import rule_set
from fangcheng_rules.scoring import score
from fangcheng_suite.render import Ink
from fangcheng_suite.report import hand_report
from fangcheng_table.convert_play import finished_to_wire, score_to_wire
from tests.rules.golden import parse


def report(rules_id: str, hand: str) -> str:
    rules = rule_set(rules_id)
    (found,) = parse("== a hand\n" + hand)
    told = score(rules, found.options, found.finished)
    ended = events_pb2.HandEnded(
        hand=finished_to_wire(found.finished), score=score_to_wire(told, rules), net=told.net
    )
    view = TableView(
        rules=rules_pb2.RuleSetChoice(id=rules_id),
        seats=[SeatView(name=name) for name in ("Mei", "Lan", "Zhu", "Ju")],
        ended=ended,
    )
    return "\n".join(line.plain for line in hand_report(view, Ink()))


def test_a_loser_that_pays_the_cap_is_told_to_be_capped() -> None:
    hand = "dealer: 1\n0: 1111234567899m\n1: ? | chi 345s\n2: ? | chi 345s\n3: ? | chi 345s\n"
    told = report("baishan_kele", hand + "end: 0 draws 9m")
    assert "Lan pays  50 units, 7 fan, capped, with 坐庄 dealer 1" in told
    assert "Zhu pays  50 units, 6 fan, capped" in told
    without = report("baishan_kele", "options: cap 0\n" + hand + "end: 0 draws 9m")
    assert "Zhu pays  64 units, 6 fan\n" in without
