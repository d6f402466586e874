"""Text and bytes from outside that are read in this process: refused in words, or understood."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fangcheng.rules.v1 import rules_pb2
from fangcheng_client import hands, notation
from fangcheng_kit.errors import Unauthenticated
from fangcheng_kit.tokens import AUDIENCE, TokenVerifier
from fangcheng_rules import notation as rules_notation
from fangcheng_rules import packed
from fangcheng_rules.errors import RulesError
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import RULE_SETS
from tests.fuzz.shares import drawn, in_words
from tests.rules.packed_oracle import read
from tests.system.processes import KEY

_SIGNS = "0123456789mpszf?[]()+ \t\n一二九万萬饼条東發白中春🀇🀄🀫\ufe0f²٣₇"
texts = st.one_of(
    st.text(_SIGNS, max_size=60),
    st.text(max_size=40),
    # Nearly a hand: sets, melds and a winning tile, with something amiss now and then.
    st.lists(
        st.sampled_from(
            [
                "123m",
                "44p",
                "999s",
                "[555z]",
                "(1111s)",
                "[555+5z]",
                "[567z]",
                "+7s",
                "6z",
                "[",
                "+",
            ]
        ),
        max_size=9,
    ).map("".join),
)
# Halves of signs too, which JSON can write and UTF-8 cannot.
_odd_text = st.lists(
    st.sampled_from(["a", "ming", ":", " ", "方", "🀄", "\ud83c", "\udfff", "\0", "x" * 60])
).map("".join)
subjects = st.one_of(
    st.just(""),
    st.sampled_from(["operator", "service:table"]),
    _odd_text.map("player:".__add__),
)
DESCRIBED = rules_pb2.RuleSet(
    id="baishan_kele",
    revision=1,
    options=[rules_pb2.OptionSpec(id="piao", default_value=rules_pb2.OptionValue(boolean=True))],
    packed_options=["piao"],
    fan_items=[rules_pb2.FanItemSpec(id="closed", whose="both")],
)


@drawn("notation", 3)
@given(texts)
def test_the_client_reads_a_text_or_says_what_is_wrong_with_it(text: str) -> None:
    try:
        tiles = notation.parse(text)
    except ValueError as error:
        in_words(str(error))
    else:
        assert notation.parse(notation.text(tiles)) == tiles


@drawn("notation", 3)
@given(texts)
def test_the_rules_read_a_text_or_say_what_is_wrong_with_it(text: str) -> None:
    try:
        hand = rules_notation.parse_hand(text)
    except RulesError as error:
        in_words(error.reason, error.message)
    else:
        assert rules_notation.parse_hand(rules_notation.hand_to_mpsz(hand)) == hand


@drawn("notation", 3)
@given(texts)
def test_the_client_packs_a_hand_that_is_written_or_says_why_not(text: str) -> None:
    try:
        records = hands.pack(DESCRIBED, [text])
    except ValueError as error:
        in_words(str(error))
    else:
        assert len(records.tobytes()) == hands.HAND.itemsize


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _odd_text,
    lambda part: (
        st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=3), part, max_size=3)
    ),
    max_leaves=6,
)
_claims = st.fixed_dictionaries(
    {"sub": _json, "aud": st.just(AUDIENCE) | _json, "exp": st.just(2**40) | _json},
    optional=dict.fromkeys(("iat", "nbf", "iss", "scope", "scopes", "jti"), _json),
)
_headers = st.just({"alg": "HS256"}) | st.dictionaries(st.text(max_size=4), _json)
tokens = st.one_of(
    # In order, but for whom they are of and what they allow.
    st.tuples(
        st.just({"alg": "HS256"}),
        st.fixed_dictionaries(
            {
                "aud": st.just(AUDIENCE),
                "exp": st.just(2**40),
                "scopes": st.lists(_odd_text),
            }
        ),
        subjects,
    ),
    st.tuples(_headers, _claims, subjects),
)


@drawn("tokens")
@given(tokens)
def test_a_token_of_whatever_its_key_has_signed_names_somebody_or_is_refused(
    token: tuple[dict[str, Any], dict[str, Any], str],
) -> None:
    header, claims, subject = token
    if subject:
        claims["sub"] = subject
    told = ".".join(_base64(json.dumps(part).encode()) for part in (header, claims))
    seal = _base64(hmac.digest(KEY.encode(), told.encode(), "sha256"))
    try:
        caller = TokenVerifier(KEY).verified(f"{told}.{seal}").principal
    except Unauthenticated as error:
        in_words(error.reason, error.message)
    else:
        assert caller.subject.encode()
        assert caller.expires > 0


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@st.composite
def records(draw: st.DrawFn) -> tuple[RuleSet, packed.Records]:
    """A few records: any bytes, or a hand in order with some bytes changed."""
    rules = draw(st.sampled_from(RULE_SETS))
    made = []
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            made.append(draw(st.binary(min_size=32, max_size=32)))
            continue
        kinds = draw(st.lists(st.integers(0, 33), min_size=13, max_size=14))
        words = [0, 0, 0, 0]
        for kind in kinds:
            words[kind // 9] += 1 << 3 * (kind % 9)
        record = bytearray(b"".join(word.to_bytes(4, "little") for word in words) + bytes(16))
        for _ in range(draw(st.integers(0, 2))):
            record[draw(st.integers(16, 31))] = draw(st.integers(0, 255))
        made.append(bytes(record))
    return rules, np.frombuffer(b"".join(made), packed.HAND)


@drawn("packed")
@given(records(), st.integers(0, packed.EVERYTHING))
def test_a_packed_record_is_what_the_second_reader_reads(
    given_records: tuple[RuleSet, packed.Records], ask: int
) -> None:
    rules, given_hands = given_records
    results = packed.evaluate(rules, given_hands, ask)
    for record, result in zip(given_hands, results, strict=True):
        reason, _ = read(rules, record)
        assert packed.STATUSES[result["status"]][0] == reason


@drawn("results")
@given(st.binary(max_size=400))
def test_results_of_any_bytes_are_unpacked(data: bytes) -> None:
    whole = data[: len(data) // hands.RESULT.itemsize * hands.RESULT.itemsize]
    for found in hands.unpack(DESCRIBED, np.frombuffer(whole, hands.RESULT)):
        assert found.fan >= 0
        assert set(found.items) <= {"closed"}
        assert set(found.waits) <= notation.TILES
