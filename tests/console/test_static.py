"""The page's own files: both languages say the same, and nothing needs what the policy forbids."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from fangcheng_console.web import STATIC

WORDS = sorted(STATIC.rglob("*.i18n.js"))
OWN = [path for path in sorted(STATIC.rglob("*.js")) if "vendor" not in path.parts]


def name(path: Path) -> str:
    return str(path.relative_to(STATIC))


def words(path: Path) -> dict[str, dict[str, str]]:
    """The dictionary of a file: what it exports is YAML, too, in its flowing style."""
    text = path.read_text("utf-8")
    exported = text[text.index("export default") + len("export default") :].strip().rstrip(";")
    found: dict[str, dict[str, str]] = yaml.load(exported, yaml.CSafeLoader)
    return found


@pytest.mark.parametrize("path", WORDS, ids=name)
def test_both_languages_have_the_same_words_with_the_same_places(path: Path) -> None:
    found = words(path)
    assert found.keys() == {"en", "zh"}
    assert found["en"].keys() == found["zh"].keys()
    for key, english in found["en"].items():
        assert english.strip(), key
        assert found["zh"][key].strip(), key
        places = [set(re.findall(r"\{(\w+)\}", found[lang][key])) for lang in ("en", "zh")]
        assert places[0] == places[1], key


def test_no_word_has_two_meanings() -> None:
    known: dict[str, str] = {}
    for path in WORDS:
        for key in words(path)["en"]:
            assert key not in known, f"{key} is in {known.get(key)} and {name(path)}"
            known[key] = name(path)


def test_every_word_that_is_asked_for_is_there() -> None:
    known = {key for path in WORDS for key in words(path)["en"]}
    for path in OWN:
        if path in WORDS:
            continue
        for key in re.findall(r"""\bt\(\s*["']([\w.\-]+)["']\s*[,)]""", path.read_text("utf-8")):
            assert key in known, f"{name(path)} says {key}"


def test_every_page_of_the_routes_is_there() -> None:
    routes = (STATIC / "routes.js").read_text("utf-8")
    pages = set(re.findall(r'page: "(\w+)"', routes))
    assert len(pages) > 5
    there = {path.stem for path in (STATIC / "pages").glob("*.js")} - {
        path.stem for path in (STATIC / "pages").glob("*.i18n.js")
    }
    assert pages <= there


@pytest.mark.parametrize("path", OWN, ids=name)
def test_no_file_needs_what_the_policy_forbids(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not re.search(r"<[^>]*\sstyle=", text), "styles stand in .css files"
    assert not re.search(r"\beval\(|new Function\(|<script|\son\w+=\"", text)
    elsewhere = [url for url in re.findall(r"https?://[\w.]+", text) if "www.w3.org" not in url]
    assert elsewhere == []
    for imported in re.findall(r'(?:\bfrom|\bimport)\s*\(?"(\.[^"$`]+)"', text):
        assert (path.parent / imported).resolve().is_file(), imported


def test_what_is_vendored_has_its_licence() -> None:
    for folder in (STATIC / "vendor").iterdir():
        assert (folder / "LICENSE").read_text("utf-8").strip(), folder.name
