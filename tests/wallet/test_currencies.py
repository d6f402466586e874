"""The currencies of the wallet are read from a file, which is checked before anything is served."""

from __future__ import annotations

from pathlib import Path

import pytest

from fangcheng_kit import serving
from fangcheng_kit.app import StartFailed
from fangcheng_wallet.currencies import BadCurrencies, load_currencies, parse_currencies
from fangcheng_wallet.ledger import DEFAULT_CURRENCIES, Currency
from fangcheng_wallet.service import open_service
from fangcheng_wallet.settings import WalletSettings
from tests.wallet.wire import KEY


def test_without_a_file_there_are_silver_and_points() -> None:
    assert load_currencies() == DEFAULT_CURRENCIES


@pytest.mark.parametrize(
    "text",
    [
        "currencies: [{id: beans, floor: -5, minor_digits: 2, names: {zh: 豆}}, "
        "{id: cups, books: true, floor: null, most: 9}]",
        '{"currencies": [{"id": "beans", "floor": -5, "minor_digits": 2, "names": {"zh": "豆"}}, '
        '{"id": "cups", "books": true, "floor": null, "most": 9}]}',
    ],
    ids=["YAML", "JSON"],
)
def test_a_file_states_every_currency(tmp_path: Path, text: str) -> None:
    path = tmp_path / "currencies"
    path.write_text(text)
    assert load_currencies(path) == (
        Currency("beans", floor=-5, minor_digits=2, names={"zh": "豆"}),
        Currency("cups", books=True, floor=None, most=9),
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("currencies: [{id: a}, {id: a}]", "c: currencies: the currency a is listed twice"),
        ("currencies: []", "c: currencies: must hold at least 1"),
        ("currencies: [{id: a, floor: 1}]", r"c: currencies\[0\].floor: must be at most 0"),
        (
            "currencies: [{id: a, floor: -0.5}]",
            r"c: currencies\[0\].floor: must be a whole number",
        ),
        ("currencies: [{id: a, cap: 1}]", r"c: currencies\[0\].cap: is no key that is known here"),
        (
            "currencies: [{id: a, most: 9007199254740993}]",
            r"c: currencies\[0\].most: must be at most 9007199254740992",
        ),
        ("currencies: [{id: ''}]", r"c: currencies\[0\].id: must have at least 1 char"),
        ("beans", "c: the file: must be keys with their values"),
        ("a: [", "c: not YAML: "),
    ],
)
def test_what_cannot_be_is_told_with_its_place(text: str, complaint: str) -> None:
    with pytest.raises(BadCurrencies, match=complaint):
        parse_currencies(text, "c")


async def test_a_service_does_not_start_without_its_currencies(tmp_path: Path) -> None:
    settings = WalletSettings(
        dev_key=KEY, database=str(tmp_path / "w.db"), currencies=tmp_path / "none.yaml"
    )
    with pytest.raises(StartFailed, match=r"none\.yaml: cannot be read"):
        async with serving("wallet", settings, open_service):
            pass
