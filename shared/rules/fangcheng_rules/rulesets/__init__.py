"""The rule sets: one file each, and the tuple that makes them known.

Whatever is in `RULE_SETS` is played, scored and listed everywhere, and put through the same
acceptance tests. A rule set of an installed package of somebody else's joins it by an entry point
of the group `fangcheng.rule_sets`, one line that names its `RuleSet`::

    [project.entry-points."fangcheng.rule_sets"]
    riverside = "riverside:RULE_SET"
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Final

from fangcheng_rules.errors import UnknownRevision, UnknownRuleSet
from fangcheng_rules.ruleset import RuleSet

from . import baicheng, baishan_dazui, baishan_kele, jintan, shandong

ENTRY_POINTS: Final = "fangcheng.rule_sets"

BUILT_IN: tuple[RuleSet, ...] = (
    baishan_kele.RULE_SET,
    baishan_dazui.RULE_SET,
    baicheng.RULE_SET,
    shandong.RULE_SET,
    jintan.RULE_SET,
)
"""Those of this package: of each the newest revision."""

RULE_SETS: tuple[RuleSet, ...] = (
    *BUILT_IN,
    *(point.load() for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda p: p.name)),
)
"""All that are known here."""

OLDER: tuple[RuleSet, ...] = ()
"""Older revisions, kept so that hands begun under them are played on and their records replay. An
older one's `Hot` has an id of its own, such as `baishan_kele-1`."""

_NEWEST = {rules.id: rules for rules in RULE_SETS}
_KNOWN = {(rules.id, rules.revision): rules for rules in (*RULE_SETS, *OLDER)}
if len(_KNOWN) < len(RULE_SETS) + len(OLDER):
    raise ValueError("two rule sets with one id and revision")


def known() -> tuple[RuleSet, ...]:
    """Every rule set in every revision that is here, the newest of each first."""
    return tuple(_KNOWN.values())


def rule_set(id: str, revision: int = 0) -> RuleSet:
    """The rule set of that id; revision 0 means the newest.

    Raises UnknownRuleSet, or UnknownRevision when it is known in other revisions only.
    """
    newest = _NEWEST.get(id)
    if newest is None:
        raise UnknownRuleSet("UNKNOWN_RULE_SET", f"there is no rule set {id!r}", "rules.id")
    found = _KNOWN.get((id, revision)) if revision else newest
    if found is None:
        raise UnknownRevision(
            "UNKNOWN_REVISION",
            f"{id} is here in revision {newest.revision}, not {revision}",
            "rules.revision",
        )
    return found
