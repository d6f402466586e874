"""Which revision of its rule set a transcript was written under: `tests/golden/revisions.txt`.

A transcript that changes means that a hand is played or scored differently: then the rule set's
revision is raised first. `python -m tests.rules.revisions` notes new transcripts, and changed ones
of a raised revision; it refuses to note a change under the same revision.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from fangcheng_rules.rulesets import rule_set
from tests.rules.golden import FOLDER
from tests.rules.transcripts import files, read

NOTED = FOLDER / "revisions.txt"

Note = tuple[str, int, str]
"""A rule set, its revision, and a digest of the transcript."""


def noted(file: Path = NOTED) -> dict[str, Note]:
    """What was noted of each transcript."""
    found: dict[str, Note] = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        name, rules, revision, digest = line.split()
        found[name] = rules, int(revision), digest
    return found


def as_they_are() -> dict[str, Note]:
    """What is to be noted of each transcript now."""
    found: dict[str, Note] = {}
    for file in files():
        text = file.read_text(encoding="utf-8")
        rules = rule_set(read(text).setup["rule_set"])
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        found[file.stem] = rules.id, rules.revision, digest
    return found


def changed(before: dict[str, Note], now: dict[str, Note]) -> list[str]:
    """Transcripts that have changed, or are gone, under the revision that they were noted with."""
    return [
        name
        for name, (rules, revision, digest) in before.items()
        if now.get(name, (rules, rule_set(rules).revision, ""))[1] == revision
        and now.get(name, (rules, revision, ""))[2] != digest
    ]


if __name__ == "__main__":
    wrong = changed(noted(), as_they_are())
    if wrong:
        sys.exit(f"raise the revision of the rule set first: {', '.join(wrong)} changed")
    lines = [
        f"{name} {rules} {revision} {digest}\n"
        for name, (rules, revision, digest) in sorted(as_they_are().items())
    ]
    NOTED.write_text("".join(lines), encoding="utf-8")
