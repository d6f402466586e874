"""Page tokens and ids."""

from __future__ import annotations

import base64
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fangcheng_kit.errors import InvalidArgument
from fangcheng_kit.ids import new_id
from fangcheng_kit.pages import _digest, after, page_size, page_token

NUMBERS = st.integers(0, 2**63 - 1)


@given(st.text(max_size=40), NUMBERS, st.dictionaries(st.text(), st.text(), max_size=3))
def test_a_token_gives_back_the_keys_it_was_made_of(
    name: str, number: int, filters: dict[str, str]
) -> None:
    assert after(page_token([name, number], filters), [str, int], filters) == (name, number)


def test_no_token_begins_at_the_first_row() -> None:
    assert after("", [str]) is None


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "!!!!",
        "bm9uZQ",
        page_token(["a"], {"other": "list"}),
        page_token([7]),
        page_token(["a", "b"]),
        page_token(["a"])[:-3],
    ],
)
def test_a_token_of_another_list_or_of_nobody_is_refused_with_the_field(token: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        after(token, [str])
    assert (caught.value.reason, caught.value.field) == ("INVALID_PAGE_TOKEN", "page_token")


@pytest.mark.parametrize("key", [2**63, -1, -(2**63) - 1, 10**60, True, 1.0])
def test_a_number_that_no_list_has_told_is_no_key(key: int) -> None:
    with pytest.raises(InvalidArgument) as caught:
        after(page_token([key]), [int])
    assert (caught.value.reason, caught.value.field) == ("INVALID_PAGE_TOKEN", "page_token")


def test_half_a_character_is_no_key() -> None:
    body = '["' + _digest(None) + '","a\\ud800"]'
    token = base64.urlsafe_b64encode(body.encode()).decode().rstrip("=")
    with pytest.raises(InvalidArgument):
        after(token, [str])


@given(st.text(max_size=256))
def test_whatever_a_caller_sends_is_a_token_or_refused(token: str) -> None:
    try:
        keys = after(token, [str])
    except InvalidArgument:
        return
    assert keys is None


def test_a_page_has_a_default_and_a_largest_size() -> None:
    assert [page_size(asked) for asked in (0, 1, 500, 501)] == [50, 1, 500, 500]


def test_ids_are_unique_sort_by_time_and_are_uuids_of_version_7() -> None:
    ids = {new_id() for _ in range(10_000)}
    assert len(ids) == 10_000
    assert all(len(one) == 32 and one[12] == "7" and one[16] in "89ab" for one in ids)
    before = new_id()
    millisecond = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 == millisecond:
        pass
    assert before < new_id()
