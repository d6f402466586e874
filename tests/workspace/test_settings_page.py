"""The page of settings tells of every variable that something reads."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
READ = re.compile(r"\"(FANGCHENG_[A-Z_]+[A-Z])\"")


def test_every_variable_that_the_code_names_is_on_the_page() -> None:
    page = (ROOT / "docs" / "settings.md").read_text("utf-8")
    named = {
        variable
        for folder in ("shared", "services")
        for path in (ROOT / folder).rglob("*.py")
        for variable in READ.findall(path.read_text("utf-8"))
    }
    assert {"FANGCHENG_STATE", "FANGCHENG_CACHE_DIR", "FANGCHENG_INTERPRETED"} <= named
    assert {variable for variable in named if f"`{variable}`" not in page} == set()
