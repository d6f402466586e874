"""A rule set and its options, as the words of a command line name them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fangcheng_rules.errors import RulesError, UnknownRevision
from fangcheng_rules.ruleset import OptionValue, RuleSet
from fangcheng_rules.rulesets import RULE_SETS, rule_set

from .errors import SuiteError

_NUMBER = re.compile(r"[+-]?\d+")


def rules_named(id: str, revision: int = 0) -> RuleSet:
    """The rule set of this id, in its newest revision or that one; else SuiteError tells which."""
    try:
        return rule_set(id, revision)
    except UnknownRevision as error:
        raise SuiteError(error.message, "Name the revision that is here, or 0.") from None
    except RulesError:
        known = ", ".join(rules.id for rules in RULE_SETS)
        raise SuiteError(f"there is no rule set {id}", f"There are: {known}.") from None


def options_given(
    rules: RuleSet, texts: Sequence[str], word: str = "--option"
) -> dict[str, OptionValue]:
    """Every option of a rule set, those that are given (`cap=0`) and the defaults of the rest.

    `word`: what they were given with. Raises SuiteError that tells which options there are.
    """
    try:
        return rules.complete(dict(_option(rules, text, word) for text in texts))
    except RulesError as error:
        raise SuiteError(f"{word}: {error.message}", _options_hint(rules)) from None


def shown(value: OptionValue) -> str:
    """The value of an option, for people."""
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _option(rules: RuleSet, text: str, word: str) -> tuple[str, OptionValue]:
    name, equals, value = text.partition("=")
    if not equals:
        raise SuiteError(f"{word} {text!r}: no value", f"Write it as {name}=VALUE.")
    if value.lower() in ("true", "on", "yes"):
        return name, True
    if value.lower() in ("false", "off", "no"):
        return name, False
    return name, int(value) if _NUMBER.fullmatch(value) else value


def _options_hint(rules: RuleSet) -> str:
    known = ", ".join(f"{spec.id} (default {shown(spec.default)})" for spec in rules.options)
    return f"{rules.id} has: {known}."
