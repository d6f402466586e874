"""The rules that we ship, as the tests look at them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import promql_parser
import yaml

from tests.promql import selectors

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "prometheus" / "rules"

RUNBOOKS = "docs/operations/alerts"
TESTS = Path(__file__).parent

_JOINS = re.compile(r"and|or|unless")
_COMPARES = re.compile(r"[<>]=?|[!=]=")
_OF_A_FAULT = re.compile(r'grpc_code=~"[^"]*",?')
"""What only a call that failed inside has."""


@dataclass(frozen=True, slots=True)
class Rule:
    """An alert, or a series that is recorded."""

    name: str
    query: str
    labels: dict[str, str]
    annotations: dict[str, str]


def alerts() -> list[Rule]:
    """Every rule of an alert; several may have one name, with other windows."""
    return [_rule("alert", rule) for rule in _rules("alerts.yml")]


def recordings() -> list[Rule]:
    """Every series that is recorded."""
    return [_rule("record", rule) for rule in _rules("recording.yml")]


def fed(rule: Rule) -> list[str]:
    """What must have series while a suite plays, as queries: the rule without its comparisons.

    Each side of a comparison, of `and`, `or` and `unless` is a query of its own, since those are
    empty as long as all is well.
    """
    return list(dict.fromkeys(_sides(promql_parser.parse(rule.query))))


def _rules(file: str) -> Iterator[dict[str, Any]]:
    for group in yaml.safe_load((FOLDER / file).read_text("utf-8"))["groups"]:
        yield from group["rules"]


def _rule(kind: str, rule: dict[str, Any]) -> Rule:
    return Rule(rule[kind], rule["expr"], rule.get("labels", {}), rule.get("annotations", {}))


def _sides(expr: promql_parser.Expr) -> Iterator[str]:
    match expr:
        case promql_parser.ParenExpr():
            yield from _sides(expr.expr)
        case promql_parser.BinaryExpr() if _splits(str(expr.op)):
            yield from _sides(expr.lhs)
            yield from _sides(expr.rhs)
        case promql_parser.Call() if expr.func.name == "absent":
            yield from _sides(expr.args[0])
        case _ if selectors(query := expr.prettify()):  # and not a number
            yield _OF_A_FAULT.sub("", query)


def _splits(operator: str) -> bool:
    return bool(_JOINS.fullmatch(operator) or _COMPARES.fullmatch(operator))
