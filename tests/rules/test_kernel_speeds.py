"""One source, two speeds: compiled and interpreted agree, with and without files to keep."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fangcheng_rules.kernels import aims, bound, folders, speed, tables
from fangcheng_rules.kernels.facts import NEEDS_258, NEEDS_TRIPLET, STANDARD, Hot
from fangcheng_rules.rulesets import RULE_SETS
from fangcheng_rules.rulesets.baishan_kele import HOT

REPOSITORY = Path(__file__).parents[2]


def evaluated(hands: int, **settings: str) -> dict[str, Any]:
    """What a process with these settings finds for so many hands of each rule set."""
    answer = subprocess.run(
        [sys.executable, "-m", "tests.rules.evaluate_all", str(hands)],
        cwd=REPOSITORY,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("hands", [150, pytest.param(20_000, marks=pytest.mark.slow)])
def test_compiled_and_interpreted_agree_on_the_hands_of_every_rule_set(
    tmp_path: Path, hands: int
) -> None:
    compiled = evaluated(hands, FANGCHENG_INTERPRETED="")
    # Nor is anything needed on disk. A folder below a file can be made by nobody.
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    interpreted = evaluated(
        hands, FANGCHENG_INTERPRETED="1", FANGCHENG_CACHE_DIR=str(blocked / "cache")
    )
    assert compiled["compiled"]
    assert not interpreted["compiled"]
    assert {*compiled["found"]} == {*interpreted["found"]} <= {rules.id for rules in RULE_SETS}
    assert len(interpreted["found"]) >= 5
    for rules, found in interpreted["found"].items():
        assert len(found) == hands * 11 // 10
        assert compiled["found"][rules] == found, rules


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tables, "cache_folder", lambda: tmp_path)
    return tmp_path


def fresh_load() -> tables.Table:
    return tables.load.__wrapped__()


def test_tables_are_read_back_as_they_were_built(folder: Path) -> None:
    built = fresh_load()
    (file,) = folder.iterdir()
    assert file.suffix == ".npy"
    read = fresh_load()
    assert np.array_equal(built, read)
    assert np.array_equal(read, tables.load())
    assert [file] == list(folder.iterdir())
    # One type for numba, whichever way they came.
    assert (built.flags.writeable, built.dtype) == (read.flags.writeable, read.dtype)
    assert not built.flags.writeable
    # A damaged file is built again.
    whole = file.read_bytes()
    file.unlink()  # it is mapped into memory; what is mapped must not be cut
    file.write_bytes(whole[: len(whole) // 2])
    assert np.array_equal(fresh_load(), built)
    assert file.read_bytes() == whole


def test_aims_are_read_back_as_they_were_built(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aims, "cache_folder", lambda: folder)
    built = aims.load.__wrapped__(NEEDS_258)
    (file,) = folder.iterdir()
    assert file.name.startswith("aims-258")
    read = aims.load.__wrapped__(NEEDS_258)
    assert np.array_equal(built, read)
    assert (built.flags.writeable, built.dtype) == (read.flags.writeable, read.dtype)
    # One that was cut is built again.
    file.unlink()  # it is mapped into memory; what is mapped must not be cut
    np.save(file, np.asarray(built)[:-4])
    assert np.array_equal(aims.load.__wrapped__(NEEDS_258), built)


def test_needs_that_no_table_knows_together_are_refused() -> None:
    with pytest.raises(ValueError, match="together with other needs"):
        aims.load(NEEDS_258 | NEEDS_TRIPLET)


@pytest.mark.parametrize("damage", ["empty", "cut", "zeros", "text", "longer", "other words"])
def test_a_damaged_file_is_not_taken_for_tables(tmp_path: Path, damage: str) -> None:
    table = tables.load()
    file = tmp_path / "tables.npy"
    tables.write_words(file, table)
    assert np.array_equal(tables._read(file), table)
    whole = file.read_bytes()
    file.unlink()  # it is mapped into memory; what is mapped must not be cut
    if damage == "empty":
        file.write_bytes(b"")
    elif damage == "cut":
        file.write_bytes(whole[:-4])
    elif damage == "zeros":
        np.save(file, np.zeros(len(table), np.int32))
    elif damage == "text":
        file.write_text("what is this")
    elif damage == "longer":
        np.save(file, np.append(table, np.int32(0)))
    else:
        np.save(file, table.astype(np.int64))
    assert tables._read(file) is None


def test_every_key_of_a_hand_has_a_row_that_fits_it() -> None:
    table = tables.load()
    places = tables.layout(table)
    keys = tables.KEYS + 2 * tables.HONOUR_KEYS
    assert keys == places.CLASSES - places.ROWS
    readings = table[places.ROWS : places.CLASSES] >> 10 & 7
    assert readings.max() == 4
    splits = (places.WALKS - places.SPLITS) // 2
    assert readings.sum() == splits  # each row has its own splits
    classes = table[places.CLASSES : places.WANTED].view(np.uint8)[:keys]
    assert 0 <= classes.min() <= classes.max() < places.MERGE_WIDTH


def test_a_second_rule_set_with_the_same_id_is_refused() -> None:
    assert bound.bind(HOT) is bound.bind(HOT)
    other = Hot(HOT.id, STANDARD, (), HOT.allows, HOT.fan)
    with pytest.raises(ValueError, match="two rule sets with the id baishan_kele"):
        bound.bind(other)


def test_more_fan_items_than_fit_are_refused() -> None:
    many = Hot("many_items", STANDARD, tuple(map(str, range(16))), HOT.allows, HOT.fan)
    with pytest.raises(ValueError, match="many_items has 16 fan items"):
        bound.Kernels(many)


def test_tables_are_kept_apart_for_every_state_of_their_sources(tmp_path: Path) -> None:
    file = tmp_path / "rules.py"
    file.write_text("a = 1")
    before = folders.digest_of(file)
    assert folders.digest_of(file) == before
    file.write_text("a = 2")
    assert folders.digest_of(file) != before


RULES = """
from fangcheng_rules.kernels.facts import held_kinds

{comment}
MASK = {mask}
OTHER = {other}
elsewhere = types.ModuleType("elsewhere")
elsewhere.NAMED, elsewhere.UNNAMED = {named}, {unnamed}


def helper(x, y={default}, *, z={keyword}):
    return x + y + z + {added}


def counting(least):
    return lambda x: x >= least


enough = counting({enclosed})


def allows(hand, reading):
    \"\"\"{words}\"\"\"
    return helper(held_kinds(hand)) & MASK & elsewhere.NAMED != {constant} and enough(hand)
"""


def digest_with(**changes: object) -> str:
    numbers = "mask other added constant named unnamed default keyword enclosed"
    parts = {"comment": "", "words": "Words.", **dict.fromkeys(numbers.split(), 1)}
    space: dict[str, Any] = {"types": types}
    exec(RULES.format(**parts | changes), space)  # noqa: S102  # a rule set's file, as it could be
    return folders.digest_of_functions(space["allows"])


@pytest.mark.parametrize(
    "change", ["mask", "added", "constant", "named", "default", "keyword", "enclosed"]
)
def test_machine_code_of_a_rule_set_goes_by_all_that_its_functions_use(
    change: str,
) -> None:
    assert digest_with(**{change: 2}) != digest_with()


@pytest.mark.parametrize(
    "change", [{"comment": "# Why."}, {"other": 2}, {"unnamed": 2}, {"words": "Others."}]
)
def test_machine_code_of_a_rule_set_does_not_go_by_what_they_do_not_use(
    change: dict[str, object],
) -> None:
    assert digest_with(**change) == digest_with()


def test_machine_code_of_every_rule_set_goes_by_the_kernels_sources(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = folders.digest_of_functions(HOT.allows)
    assert folders.digest_of_functions(HOT.allows) == before
    assert folders.digest_of_functions(HOT.fan) != before
    monkeypatch.setattr(folders, "kernels_digest", lambda: "others")
    assert folders.digest_of_functions(HOT.allows) != before


def test_of_earlier_sources_the_code_used_last_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "cache_folder", lambda: tmp_path)
    beside = folders.code_folder("kele-second-1")
    made = [folders.code_folder(f"kele-{number}") for number in range(3)]
    for age, folder in enumerate([beside, *made]):
        assert folder is not None
        (folder / "code").write_text("")
        os.utime(folder, (age, age))
    assert folders.code_folder("kele-0") == made[0]  # used again
    made += [folders.code_folder(f"kele-{number}") for number in (3, 4)]
    assert {*tmp_path.iterdir()} == {beside, made[0], *made[2:]}


@speed.entry
def count_of(bits: int) -> int:
    return speed.count_bits(bits)


@speed.entry
def lowest_of(bits: int) -> int:
    return speed.lowest_bit(bits)


@speed.entry
def gathered_of(bits: int, mask: int) -> int:
    return speed.gather_bits(bits, mask)


def test_bits_are_counted() -> None:
    for bits in (0, 1, 2**62, 2**63 - 1, 0x5555555555555555, 0x123456789ABCDEF):
        assert count_of(bits) == bits.bit_count()
        assert not bits or lowest_of(bits) == speed._lowest_bit(bits) == f"{bits:b}"[::-1].index(
            "1"
        )


def test_bits_are_gathered() -> None:
    for bits in (0, 1, 2**63 - 1, 0x123456789ABCDEF, -1, -(2**63)):
        for mask in (0, 1, 0o111111111 << 32 | 0o111111111, 2**63 - 1):
            chosen = "".join(
                str(bits >> place & 1) for place in range(63, -1, -1) if mask >> place & 1
            )
            expected = int(chosen or "0", 2)
            assert gathered_of(bits, mask) == speed._gather_bits(bits, mask) == expected
