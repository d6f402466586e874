"""The page's own files: both languages say the same, and nothing needs what the policy forbids."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
import yaml

from fangcheng.table.v1 import events_pb2
from fangcheng_console.links import MADE, OPENED, REVOKED
from fangcheng_console.verbs import VERBS
from fangcheng_console.web import STATIC
from fangcheng_rules.events import DrawOrigin
from fangcheng_rules.melds import MeldKind
from fangcheng_rules.scoring import TransferReason

WORDS = sorted(STATIC.rglob("*.i18n.js"))
PROTOS = Path(__file__).parents[2] / "protos/fangcheng/table/v1"
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


# What no person is told of: the picture itself, and what one seat alone is asked.
UNTOLD = {
    "table_opened",
    "snapshot",
    "prompt",
    "prompt_closed",
    "seat_prompted",
    "seat_prompt_closed",
}


def test_every_kind_of_event_has_its_words() -> None:
    text = (STATIC / "words.js").read_text("utf-8")
    table = text[text.index("const TOLD = {") : text.index("export function told")]
    told = set(re.findall(r"^  (\w+): \(", table, re.MULTILINE))
    kinds = {field.name for field in events_pb2.TableEvent.DESCRIPTOR.oneofs_by_name["kind"].fields}
    assert told == kinds - UNTOLD


def quoted(message: str, field: str) -> set[str]:
    """What the contract says that a field of a message may hold, by the comment above it."""
    for name in ("state", "events"):
        text = (PROTOS / f"{name}.proto").read_text("utf-8")
        if found := re.search(rf"^message {message} {{(.*?)^}}", text, re.MULTILINE | re.DOTALL):
            above = re.search(rf"((?:  //[^\n]*\n)+)  string {field} = ", found[1])
            assert above is not None
            return set(re.findall(r"`(\w+)`", above[1]))
    raise AssertionError(f"no message {message}")


def test_whatever_a_table_may_say_has_its_words() -> None:
    known = {key for path in WORDS for key in words(path)["en"]}
    closed, trustee = quoted("Table", "closed_reason"), quoted("TrusteeChanged", "why")
    voted, acted = quoted("VoteClosed", "outcome"), quoted("OperatorActed", "verb")
    assert min(len(said) for said in (closed, trustee, voted, acted)) > 2
    keys = {f"told.reason.{reason}" for reason in closed | trustee | voted | acted}
    keys |= {f"told.drawn.{origin}" for origin in get_args(DrawOrigin) if origin != "front"}
    keys |= {f"told.meld.{kind}" for kind in MeldKind}
    keys |= {f"reason.{reason}" for reason in (*get_args(TransferReason), "fee")}
    keys |= {f"result.dissolved.{reason}" for reason in ("vote", "deserted")}
    assert keys <= known, sorted(keys - known)


def test_the_log_can_be_asked_for_whatever_stands_in_it() -> None:
    text = (STATIC / "pages/log.js").read_text("utf-8")
    listed = text[text.index("const VERBS = [") : text.index("const STATUSES")]
    written = {*VERBS, "reveal", MADE, OPENED, REVOKED, "sign_in"}
    assert set(re.findall(r'"(\w+)"', listed)) == written
    known = words(STATIC / "acts.i18n.js")["en"]
    assert {f"act.verb.{verb}" for verb in written} <= known.keys()
