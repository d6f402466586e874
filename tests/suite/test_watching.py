"""A table's events in words, as `fangcheng watch` logs them."""

from __future__ import annotations

import pytest

from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import events_pb2
from fangcheng_client.view import SeatView, TableView
from fangcheng_suite.render import Ink
from fangcheng_suite.watching import told


@pytest.mark.parametrize(
    ("rules", "declared", "chinese", "plain"),
    [
        ("baishan_kele", "ting", "听 declared wait", "declared wait"),
        ("baishan_dazui", "ting", "报听 declared wait", "declared wait"),
        ("shandong", "lou_open", "明楼 open lou", "open lou"),
        ("nowhere", "late_wait", "late wait", "late wait"),
    ],
)
def test_what_is_declared_has_the_name_that_its_rule_set_gives_it(
    rules: str, declared: str, chinese: str, plain: str
) -> None:
    seats = [SeatView(name=name) for name in ("Mei", "Lan", "Zhu", "Ju")]
    view = TableView(rules=rules_pb2.RuleSetChoice(id=rules), seats=seats)
    event = events_pb2.TableEvent(
        discarded=events_pb2.Discarded(seat=1, tile=11, declared=declared)
    )
    (line,) = told(event, view, Ink(chinese=True))
    assert line.plain == f"Lan discards 1万 and declares {chinese}"
    (line,) = told(event, view, Ink(chinese=False))
    assert line.plain == f"Lan discards 1m and declares {plain}"
