"""The rule sets: one file each, and the tuple that makes them known.

Whatever is in `RULE_SETS` is played, scored and listed everywhere, and put through the same
acceptance tests.
"""

from __future__ import annotations

from fangcheng_rules.errors import UnknownRevision, UnknownRuleSet
from fangcheng_rules.ruleset import RuleSet

from . import baishan_kele

RULE_SETS: tuple[RuleSet, ...] = (baishan_kele.RULE_SET,)

_BY_ID = {rules.id: rules for rules in RULE_SETS}


def rule_set(id: str, revision: int = 0) -> RuleSet:
    """The rule set of that id; revision 0 means whichever there is.

    Raises UnknownRuleSet, or UnknownRevision when it is known in another revision only.
    """
    found = _BY_ID.get(id)
    if found is None:
        raise UnknownRuleSet("UNKNOWN_RULE_SET", f"there is no rule set {id!r}", "rules.id")
    if revision not in (0, found.revision):
        raise UnknownRevision(
            "UNKNOWN_REVISION",
            f"{id} is here in revision {found.revision}, not {revision}",
            "rules.revision",
        )
    return found
