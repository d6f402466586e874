"""What is secret is not compared sign by sign: the time that takes would tell how much is right.

Tokens, cookies and links are signed, and checked by a library whose comparison takes as long for
any signature. Tokens that were checked are found again by a hash with a key of the process's own
(Python's of texts), so that the place of the first difference shows in no time from which somebody
outside could learn. Codes of rooms: see `fangcheng_matchmaking/codes.py`.
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest
from jwt.algorithms import HMACAlgorithm

ROOT = Path(__file__).resolve().parents[2]
SECRETS = ("token", "secret", "signature", "bearer", "cookie", "password", "dev_key", "proof")
NO_SECRETS = ("page_token", "token_file")
"""What is called like one and is none."""


def compared(source: str) -> list[int]:
    """The lines in which something that is called like a secret is compared with something else
    than a constant."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        is_equality = any(isinstance(how, ast.Eq | ast.NotEq) for how in node.ops)
        has_constant = any(isinstance(side, ast.Constant) for side in sides)
        if is_equality and not has_constant and any(map(_is_secret, sides)):
            found.append(node.lineno)
    return found


def _is_secret(side: ast.expr) -> bool:
    name = side.attr if isinstance(side, ast.Attribute) else getattr(side, "id", "")
    return any(name.endswith(secret) for secret in SECRETS) and name not in NO_SECRETS


def test_no_secret_is_compared_with_equality() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for folder in ("shared/kit", "shared/client", "services")
        for path in (ROOT / folder).rglob("*.py")
        for line in compared(path.read_text("utf-8"))
    ]
    assert found == [], "use hmac.compare_digest"


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("token == other", [1]),
        ("\nif given != self._secret: pass", [2]),
        ("a.dev_key == b", [1]),
        ("token == ''", []),
        ("hmac.compare_digest(token, other)", []),
        ("page_token == other", []),
    ],
)
def test_a_comparison_of_secrets_is_found(source: str, lines: list[int]) -> None:
    assert compared(source) == lines


def test_the_library_that_checks_our_signatures_compares_them_in_constant_time() -> None:
    assert "compare_digest" in inspect.getsource(HMACAlgorithm.verify)
