"""docs/fairness.md: its vectors, and a second implementation written from the page alone."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format

from fangcheng_rules.rulesets import RULE_SETS, rule_set
from fangcheng_rules.tiles import code, from_code
from fangcheng_rules.wall import SecretChain, derive
from fangcheng_suite.errors import VerificationFailed
from fangcheng_suite.verify import verify
from tests.fairness import second
from tests.table.hands import played_record

PAGE = Path(__file__).parents[2] / "docs" / "fairness.md"
VECTORS: dict[str, Any] = json.loads(
    PAGE.read_text("utf-8").partition("```json\n")[2].partition("```")[0]
)
WALLS: list[dict[str, Any]] = VECTORS["walls"]


def wall_of(vector: dict[str, Any]) -> list[int]:
    return [int(tile) for row in vector["wall"] for tile in row.split()]


def test_the_second_implementation_imports_nothing_of_ours() -> None:
    tree = ast.parse(Path(second.__file__).read_text("utf-8"))
    names = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    names += [alias.name for node in imports for alias in node.names]
    assert all(name and name.split(".")[0] in sys.stdlib_module_names for name in names)


def test_both_find_the_chain_of_the_page() -> None:
    chain = VECTORS["chain"]
    root = bytes.fromhex(chain["root"])
    commitment, secrets = second.secrets(root, chain["hands"])
    assert commitment.hex() == chain["commitment"]
    assert [secret.hex() for secret in secrets] == chain["secrets"]
    ours = SecretChain(root, chain["hands"])
    assert ours.commitment == commitment
    assert [ours.secret(hand) for hand in (1, 2, 3)] == secrets


@pytest.mark.parametrize("vector", WALLS, ids=lambda vector: vector["rule_set"])
def test_both_find_the_walls_of_the_page(vector: dict[str, Any]) -> None:
    rules = rule_set(vector["rule_set"])
    secret = bytes.fromhex(vector["secret"])
    entropy = [bytes.fromhex(share) for share in vector["entropy"]]
    place = vector["table_id"], vector["hand_number"]
    dice = len(vector["dice"])
    tiles = [code(tile) for tile in rules.wall_tiles]
    assert second.shuffled(secret, entropy, *place, tiles, dice) == (
        wall_of(vector),
        vector["dice"],
    )
    wall, thrown = derive(secret, entropy, *place, tiles=rules.wall_tiles, dice=dice)
    assert [code(tile) for tile in wall] == wall_of(vector)
    assert list(thrown) == vector["dice"]


@pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.id)
def test_the_tiles_are_shuffled_from_their_ascending_order(rules: Any) -> None:
    """As the page says, and `ListRuleSets` lists them."""
    codes = [code(tile) for tile in rules.wall_tiles]
    assert codes == sorted(codes)
    assert [from_code(tile) for tile in codes] == list(rules.wall_tiles)


@pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.id)
def test_both_believe_an_honest_record(rules: Any, tmp_path: Path) -> None:
    for seed in range(3):
        record = played_record(rules.id, seed)
        text = json_format.MessageToJson(record, preserving_proto_field_name=True)
        second.check(json.loads(text), record.table_commitment)
        assert verify(record, record.table_commitment).steps > 20
    file = tmp_path / "hand.json"
    file.write_text(text, "utf-8")
    done = subprocess.run(
        [sys.executable, second.__file__, file, record.table_commitment.hex()],
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout == "The shuffle checks out.\n"


def _swap(record: Any) -> None:
    record.wall[60], record.wall[61] = record.wall[61], record.wall[60]


def _draw(record: Any) -> None:
    drawn = [event.drawn for event in record.events if event.HasField("drawn")]
    drawn[2].tile = drawn[2].tile % 9 + 21


def _deal(record: Any) -> None:
    dealt = next(event.dealt for event in record.events if event.HasField("dealt"))
    dealt.hands[0].tiles[0], dealt.hands[1].tiles[0] = (
        dealt.hands[1].tiles[0],
        dealt.hands[0].tiles[0] % 9 + 11,
    )


def _secret(record: Any) -> None:
    record.secret = bytes(32)


def _share(record: Any) -> None:
    record.entropy[3] = b"late"


@pytest.mark.parametrize("tamper", [_swap, _draw, _deal, _secret, _share])
def test_neither_believes_a_record_that_was_changed(tamper: Callable[[Any], None]) -> None:
    record = played_record("baishan_kele", 7)
    commitment = record.table_commitment
    tamper(record)
    with pytest.raises(VerificationFailed):
        verify(record, commitment)
    told = json.loads(json_format.MessageToJson(record, preserving_proto_field_name=True))
    with pytest.raises(AssertionError):
        second.check(told, commitment)
