"""A golden transcript changes only with its rule set's revision, and older revisions replay."""

from __future__ import annotations

import dataclasses

import pytest

from fangcheng_rules import rulesets
from fangcheng_rules.errors import UnknownRevision
from fangcheng_rules.round import Round
from fangcheng_rules.rulesets import rule_set
from tests.rules.revisions import as_they_are, changed, noted
from tests.rules.transcripts import files, play, read

HINT = "raise the rule set's revision, then python -m tests.rules.revisions"


def test_every_transcript_stands_as_it_was_noted() -> None:
    assert noted() == as_they_are(), HINT


def test_a_change_under_the_same_revision_is_found_and_one_under_a_new_one_is_not() -> None:
    before = as_they_are()
    name, (rules, revision, _) = next(iter(before.items()))
    assert changed(before, before) == []
    assert changed(before, before | {name: (rules, revision, "other")}) == [name]
    assert changed(before, before | {name: (rules, revision + 1, "other")}) == []
    assert changed(before, {other: note for other, note in before.items() if other != name}) == [
        name
    ]


def test_a_hand_of_an_older_revision_replays_by_its_own_rules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = files()[0]
    _, events = play(read(file.read_text(encoding="utf-8")))
    older = rule_set(events[0].rule_set)
    newest = dataclasses.replace(older, revision=older.revision + 1)
    known = {(rules.id, rules.revision): rules for rules in (older, newest)}
    monkeypatch.setattr(rulesets, "_KNOWN", known)
    monkeypatch.setattr(rulesets, "_NEWEST", {newest.id: newest})
    assert rule_set(older.id) is newest
    replayed = Round.replay(events)
    assert replayed.ended
    assert replayed.rule_set is older
    with pytest.raises(UnknownRevision):
        rule_set(older.id, older.revision + 2)
