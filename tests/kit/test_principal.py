"""Callers."""

from __future__ import annotations

import pytest

from fangcheng_kit import principal
from fangcheng_kit.principal import Principal, calling, parse_subject


@pytest.mark.parametrize(
    "subject",
    [
        "",
        "player",
        "player:",
        "operator:",
        "viewer",
        "viewer:",
        "admin:x",
        "Operator",
        "player:\0",
        "player:a\ud83c",
    ],
)
def test_a_subject_that_names_nobody_is_none(subject: str) -> None:
    with pytest.raises(ValueError, match="is none of"):
        parse_subject(subject)


def test_a_caller_is_known_only_within() -> None:
    with calling(Principal("player", "ming")):
        assert principal.current().id == "ming"
    with pytest.raises(LookupError):
        principal.current()
