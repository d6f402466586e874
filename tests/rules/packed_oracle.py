"""Packed records read a second time, tile by tile, and random ones to read."""

from __future__ import annotations

import random
from typing import Any

from fangcheng_rules import packed
from fangcheng_rules.errors import InvalidHand, InvalidMeld
from fangcheng_rules.hand import Hand
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.moments import Moment
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.tiles import DRAGONS, PLAY_KINDS
from tests.rules.random_hands import random_hand, with_whirlwind

MELD_KINDS = (MeldKind.CHI, MeldKind.PONG, MeldKind.EXPOSED_KONG, MeldKind.CONCEALED_KONG)


def read(rule_set: RuleSet, record: Any) -> tuple[str, Hand | None]:
    """Why a record is no hand; '' and the hand if it is one."""
    if record["reserved"]:
        return "INVALID_RECORD", None
    laid = [int(byte) for byte in record["melds"]]
    added = int(record["whirlwind"])
    melds: list[Meld] = []
    for place, byte in enumerate(laid):
        if byte == 0:
            if any(laid[place:]):
                return "INVALID_MELD", None
            break
        first = (byte & 63) - 1
        kind = MELD_KINDS[byte >> 6]
        tiles = (first,) * (4 if byte >> 7 else 3)
        if kind is MeldKind.CHI:
            tiles = (first, first + 1, first + 2)
            if first == DRAGONS[0] and rule_set.whirlwind:
                kind = MeldKind.WHIRLWIND
                for i, dragon in enumerate(DRAGONS):
                    tiles += (dragon,) * (added >> (2 * i) & 3)
        if kind is MeldKind.WHIRLWIND and any(meld.kind is kind for meld in melds):
            return "INVALID_MELD", None
        try:
            melds.append(Meld(kind, tiles))
        except InvalidMeld:
            return "INVALID_MELD", None
    if added >> 6 or (added and not any(meld.kind is MeldKind.WHIRLWIND for meld in melds)):
        return "INVALID_MELD", None
    concealed: list[int] = []
    for suit, word in enumerate(int(word) for word in record["concealed"]):
        if word >> (21 if suit == 3 else 27):
            return "TILE_NOT_PLAYED", None
        for place in range(9):
            concealed += [9 * suit + place] * (word >> (3 * place) & 7)
    held = concealed + [tile for meld in melds for tile in meld.tiles]
    if any(held.count(kind) > 4 for kind in range(PLAY_KINDS)):
        return "FIFTH_COPY", None
    try:
        hand = Hand(tuple(concealed), tuple(melds))
        rule_set.check_tiles(hand)
    except InvalidHand as error:
        return error.reason, None
    won = int(record["won"])
    if won and (hand.size == 13 or won - 1 not in concealed):
        return "TILE_NOT_HELD", None
    specs = {spec.id: spec for spec in rule_set.options}
    for i, value in enumerate(record["options"]):
        if i >= len(rule_set.hot.options):
            most = 0
        else:
            spec = specs[rule_set.hot.options[i]]
            most = 1 if isinstance(spec.default, bool) else spec.maximum
        if value > most:
            return "INVALID_OPTION", None
    moment = Moment(int(record["moment"]))
    if moment and not (won and can_be(moment, hand)):
        return "INVALID_MOMENT", None
    if treasure := int(record["treasure"]):
        drawn = won and Moment.SELF_DRAW in moment and Moment.ON_DEAL not in moment
        if not drawn or rule_set.turn_up is None or treasure - 1 not in rule_set.kinds:
            return "INVALID_MOMENT", None
        # One was drawn and one lies on the wall; the tile it stands for is neither.
        if held.count(treasure - 1) + 2 - (won == treasure) > 4:
            return "FIFTH_COPY", None
    return "", hand


def can_be(moment: Moment, hand: Hand) -> bool:
    """Whether a hand can have been won in this moment."""
    drawn = Moment.AFTER_KONG | Moment.AFTER_FLOWER | Moment.ON_DEAL
    if moment & drawn and Moment.SELF_DRAW not in moment:
        return False
    if Moment.AFTER_KONG in moment and not any(len(meld.tiles) > 3 for meld in hand.melds):
        return False
    if Moment.FIRST_ROUND in moment and (Moment.DEALER in moment or hand.melds):
        return False
    if Moment.ON_DEAL in moment:
        if Moment.AFTER_KONG in moment or Moment.DEALER not in moment:
            return False
        return all(meld.kind is MeldKind.WHIRLWIND for meld in hand.melds)
    return True


def random_hand_of(rng: random.Random, rule_set: RuleSet, size: int) -> Hand:
    """A hand of tiles that the rule set has."""
    while True:
        hand = random_hand(rng, size)
        if rule_set.whirlwind and rng.random() < 0.3:
            hand = with_whirlwind(rng, hand)
        if all(kind in rule_set.kinds for kind, copies in enumerate(hand.held) if copies):
            return hand


def random_records(rng: random.Random, rule_set: RuleSet, count: int) -> packed.Records:
    """Records in order: hands of 13 and 14 tiles, won in all kinds of moments."""
    records = packed.pack([random_hand_of(rng, rule_set, 13 + i % 2) for i in range(count)])
    for i in range(1, count, 2):
        _, hand = read(rule_set, records[i])
        assert hand is not None
        options = [rng.randrange(2) for _ in rule_set.hot.options]
        records[i]["options"][: len(options)] = options
        if rng.random() < 0.9:
            records[i]["won"] = rng.choice(hand.concealed) + 1
            moments = [Moment(rng.randrange(256)) for _ in range(4)]
            fitting = [moment for moment in moments if can_be(moment, hand)]
            records[i]["moment"] = fitting[0] if fitting else 0
    return records
