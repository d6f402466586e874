"""Hands by the thousand: packed records, and the call that evaluates them.

    rules = await rule_set(channel, "baishan_kele")
    hands = pack(rules, ["123456789m11p44z", "123m44p77s [555z] (1111s) +7s"])
    results = await evaluate(channel, rules, hands)
    for found in unpack(rules, results):
        print(found.wins, found.items, found.waits)

A record is what ``EvaluateHandsRequest.hands`` and ``EvaluateHandsResponse.results`` describe. With
NumPy whole columns may be filled and read at once; ``from_counts`` does so for concealed tiles. It
needs NumPy, the extra ``hands`` of this distribution.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import Any

import grpc
import grpc.aio

from fangcheng.evaluation.v1 import evaluation_pb2, evaluation_pb2_grpc
from fangcheng.rules.v1 import rules_pb2
from fangcheng_client import notation
from fangcheng_client.problems import explain
from fangcheng_client.streams import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS

try:
    import numpy as np
    import numpy.typing as npt
except ImportError as error:
    raise ImportError(
        "fangcheng_client.hands needs NumPy: install fangcheng-client[hands]"
    ) from error

LAYOUT = 1
"""The version of the records."""

HAND = np.dtype(
    [
        ("concealed", "<u4", (4,)),
        ("melds", "u1", (4,)),
        ("whirlwind", "u1"),
        ("won", "u1"),
        ("moment", "u1"),
        ("treasure", "u1"),
        ("options", "u1", (4,)),
        ("reserved", "<u4"),
    ]
)
"""One hand, 32 bytes; the proto tells what each field holds."""

RESULT = np.dtype(
    [
        ("status", "u1"),
        ("win", "u1"),
        ("shanten", "i1"),
        ("shape_shanten", "i1"),
        ("fan", "<u2"),
        ("reserved", "<u2"),
        ("waits", "<u8"),
        ("counts", "u1", (24,)),
    ]
)
"""What a hand is, 40 bytes; likewise."""

STATUSES = (
    "",
    "INVALID_RECORD",
    "INVALID_MELD",
    "TILE_NOT_PLAYED",
    "WRONG_TILE_COUNT",
    "FIFTH_COPY",
    "TILE_NOT_HELD",
    "INVALID_OPTION",
    "INVALID_MOMENT",
)
"""The reason of each status of a result; 0 is a hand in order."""

NOT_ASKED = 127
"""A shanten that was not asked for."""

NEVER = 14
"""The shanten of a hand that can win no more, whatever comes."""

MOST_HANDS = 100_000
"""Hands of one message at most."""

SCORE = evaluation_pb2.HAND_QUESTION_SCORE
WAITS = evaluation_pb2.HAND_QUESTION_WAITS
SHAPE_SHANTEN = evaluation_pb2.HAND_QUESTION_SHAPE_SHANTEN
SHANTEN = evaluation_pb2.HAND_QUESTION_SHANTEN

Records = npt.NDArray[np.void]

_AHEAD = 3
"""Messages of a stream without an answer: one at work, one that waits for it, one on its way."""


class Moment(IntFlag):
    """How a hand was won; no flag: on another's tile."""

    SELF_DRAW = 1
    AFTER_KONG = 2
    AFTER_FLOWER = 4
    ON_DEAL = 8
    FIRST_ROUND = 16
    DECLARED = 32
    DEALER = 64
    OTHERS_CLOSED = 128


@dataclass(frozen=True, slots=True)
class Meld:
    """A set laid down: its kind as the contracts name it (``chi``, ``pong``, ``exposed_kong``,
    ``added_kong``, ``concealed_kong``, ``whirlwind``), and its tile numbers, the lowest first."""

    kind: str
    tiles: Sequence[int]


@dataclass(frozen=True, slots=True)
class Hand:
    """A hand of 13 or 14 tiles, each meld counting as three."""

    concealed: Sequence[int]
    """Tile numbers in any order, the winning one among them."""
    melds: Sequence[Meld] = ()
    won: int = 0
    """Number of the winning tile; 0: not said."""
    moment: int = 0
    """Flags of ``Moment``."""
    options: Mapping[str, bool | int] = dataclasses.field(default_factory=dict)
    """Those of ``RuleSet.packed_options`` that differ from their defaults."""
    treasure: int = 0
    """Number of the treasure that was drawn, for which the winning tile stands; 0: none was."""

    @classmethod
    def read(cls, text: str) -> Hand:
        """A hand as text: ``123m44p77s [555z] (1111s) +7s``.

        Melds stand in brackets, a concealed kong in round ones; a winning tile, which comes to the
        others, after a plus sign. Raises ``ValueError`` saying what is wrong.
        """
        melds = [
            _meld(notation.parse(found[1] or found[2] or ""), is_concealed=found[1] is None)
            for found in _MELD.finditer(text)
        ]
        rest, _, last = _MELD.sub(" ", text).partition("+")
        won = notation.parse(last)
        if len(won) > 1:
            raise ValueError(f"{text!r}: more than one winning tile")
        return cls(notation.parse(rest) + won, melds, won[0] if won else 0)


@dataclass(frozen=True, slots=True)
class Found:
    """What a hand is."""

    reason: str
    """Why the record is no hand, one of ``STATUSES``; empty where it is."""
    wins: bool
    fan: int
    """Sum of what counts against every loser; fixed amounts left aside."""
    items: Mapping[str, int]
    """How often each fan item counts, those that do."""
    waits: Sequence[int]
    """Tile numbers."""
    shanten: int | None
    """Under the rule set's conditions; ``NEVER``; None: not asked for."""
    shape_shanten: int | None
    """By shape alone; None: not asked for."""


async def rule_set(channel: grpc.aio.Channel, rule_set_id: str) -> rules_pb2.RuleSet:
    """The description of a rule set, which packing needs; ``KeyError`` where there is none."""
    stub = evaluation_pb2_grpc.EvaluationServiceStub(channel)
    response = await stub.ListRuleSets(evaluation_pb2.ListRuleSetsRequest())
    for found in response.rule_sets:
        if found.id == rule_set_id:
            return found
    known = ", ".join(dict.fromkeys(found.id for found in response.rule_sets))
    raise KeyError(f"there is no rule set {rule_set_id!r}; there are: {known}")


def pack(rules: rules_pb2.RuleSet, hands: Iterable[Hand | str]) -> Records:
    """Records of hands, or of their texts. Options that a hand leaves out have their defaults.

    Raises ``ValueError`` for what has no place in a record; whether a hand can be is told in its
    result.
    """
    given = [Hand.read(hand) if isinstance(hand, str) else hand for hand in hands]
    records: Records = np.zeros(len(given), HAND)
    defaults = _defaults(rules)
    for record, hand in zip(records, given, strict=True):
        for tile in hand.concealed:
            suit, rank = divmod(_kind(tile), 9)
            if record["concealed"][suit] >> 3 * rank & 7 == 7:
                raise ValueError(f"more than seven of {notation.text([tile])}")
            record["concealed"][suit] += 1 << 3 * rank
        if len(hand.melds) > 4:
            raise ValueError(f"{len(hand.melds)} melds")
        for place, meld in enumerate(hand.melds):
            if not _is_meld(meld):
                tiles = notation.text(meld.tiles) or "no tiles"
                raise ValueError(f"no meld is {meld.kind!r} of {tiles}")
            record["melds"][place] = _HOW[meld.kind] << 6 | _kind(min(meld.tiles)) + 1
            if meld.kind == "whirlwind":
                record["whirlwind"] = sum(
                    (list(meld.tiles).count(dragon) - 1 & 3) << 2 * place
                    for place, dragon in enumerate(_DRAGONS)
                )
        record["won"] = _kind(hand.won) + 1 if hand.won else 0
        if not 0 <= hand.moment <= 255:
            raise ValueError(f"{hand.moment} is no moment: flags of Moment, 0 to 255")
        record["moment"] = hand.moment
        record["treasure"] = _kind(hand.treasure) + 1 if hand.treasure else 0
        for option, value in hand.options.items():
            if option not in defaults:
                packs = ", ".join(defaults) or "none"
                raise ValueError(f"{rules.id} packs no option {option!r}; it packs: {packs}")
            if not 0 <= value <= 255:
                raise ValueError(f"option {option!r} is {value}; a record holds 0 to 255")
        values = defaults | {option: int(value) for option, value in hand.options.items()}
        record["options"][: len(values)] = list(values.values())
    return records


def from_counts(rules: rules_pb2.RuleSet, counts: npt.NDArray[Any]) -> Records:
    """Records of hands without melds: a row each, of 34 columns, how many of each kind.

    The kinds are 1m to 9m, 1p to 9p, 1s to 9s, 1z to 7z. Options have their defaults.
    """
    if counts.ndim != 2 or counts.shape[1] != 34:
        raise ValueError(f"expected rows of 34 counts, not {counts.shape}")
    if counts.size and not 0 <= counts.min() <= counts.max() <= 7:
        raise ValueError("counts are 0 to 7")
    records: Records = np.zeros(len(counts), HAND)
    places = np.uint32(1) << np.arange(0, 27, 3, dtype=np.uint32)
    whole = counts.astype(np.uint32)
    for suit in range(4):
        ranks = whole[:, 9 * suit : 9 * suit + 9]
        records["concealed"][:, suit] = ranks @ places[: ranks.shape[1]]
    defaults = _defaults(rules)
    records["options"][:, : len(defaults)] = list(defaults.values())
    return records


def unpack(rules: rules_pb2.RuleSet, results: Records) -> list[Found]:
    """Results as plain data."""
    items = [item.id for item in rules.fan_items if item.whose != "loser"]
    return [
        Found(
            reason=STATUSES[status] if status < len(STATUSES) else f"STATUS_{status}",
            wins=bool(win),
            fan=fan,
            items={item: count for item, count in zip(items, counts, strict=False) if count},
            waits=[tile for kind, tile in enumerate(_TILES) if waits >> kind & 1],
            shanten=None if shanten == NOT_ASKED else shanten,
            shape_shanten=None if shape_shanten == NOT_ASKED else shape_shanten,
        )
        for status, win, shanten, shape_shanten, fan, _, waits, counts in results.tolist()
    ]


async def evaluate(
    channel: grpc.aio.Channel,
    rules: rules_pb2.RuleSet | rules_pb2.RuleSetChoice,
    hands: Records,
    *,
    questions: Sequence[evaluation_pb2.HandQuestion] = (),
    progress: Callable[[int, int], None] | None = None,
    hands_per_message: int = 10_000,
    streams: int = 4,
    give_up_seconds: float = 60.0,
) -> Records:
    """Results of hands, in their order, however many they are.

    They go out in messages over a few streams at once, so that several replicas share them; what
    fits in one message goes in a single call. ``questions``: what is asked; nothing: everything.
    ``progress``: told how many are done, and of how many, after each message.

    What an evaluator did not answer, because it stopped, was busy or went away, is asked again; the
    error is raised when that did not work for ``give_up_seconds``, and at once for what does not
    pass by waiting. Cancelled, it ends the work at the evaluators too.
    """
    if hands.dtype != HAND:
        raise ValueError(f"expected records of fangcheng_client.hands.HAND, not {hands.dtype}")
    if not 1 <= hands_per_message <= MOST_HANDS or streams < 1:
        raise ValueError(f"1 to {MOST_HANDS} hands a message, and a stream at least")
    common = {"rule_set": rules.id, "revision": rules.revision, "layout": LAYOUT}
    job = _Job(
        evaluation_pb2_grpc.EvaluationServiceStub(channel),
        {**common, "questions": list(questions)},
        hands,
        hands_per_message,
        progress,
        give_up_seconds,
    )
    ask = job.ask_once if len(job.waiting) == 1 else job.ask_on_a_stream
    tasks = [asyncio.ensure_future(job.run(ask)) for _ in range(min(streams, len(job.waiting)))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return np.frombuffer(job.results, RESULT)


class _Job:
    """Hands on their way, in pieces; whoever is free takes the next."""

    def __init__(
        self,
        stub: Any,
        common: Mapping[str, Any],
        hands: Records,
        hands_per_message: int,
        progress: Callable[[int, int], None] | None,
        give_up_seconds: float,
    ) -> None:
        self._stub = stub
        self._common = common
        self._hands = hands
        self._progress = progress
        self._give_up_seconds = give_up_seconds
        self._done = 0
        # A bytearray: filled by plain copies, and what is made of it may be written to.
        self.results = bytearray(len(hands) * RESULT.itemsize)
        self.waiting = deque(
            slice(start, min(start + hands_per_message, len(hands)))
            for start in range(0, len(hands), hands_per_message)
        )

    async def run(self, ask: Callable[[], Any]) -> None:
        """Until nothing waits; what got no answer waits again."""
        pause_seconds, since, done = FIRST_PAUSE_SECONDS, time.monotonic(), self._done
        while self.waiting:
            try:
                await ask()
            except grpc.aio.AioRpcError as error:
                problem = explain(error)
                if not problem.passes:
                    raise
                now = time.monotonic()
                if self._done > done:
                    pause_seconds, since, done = FIRST_PAUSE_SECONDS, now, self._done
                elif now - since > self._give_up_seconds:
                    raise
                await asyncio.sleep(
                    problem.retry_after_seconds or pause_seconds * random.uniform(0.5, 1)  # noqa: S311 # nosec B311 # no secret
                )
                pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)

    async def ask_once(self) -> None:
        """One piece, in a call of its own."""
        piece = self.waiting.popleft()
        try:
            request = evaluation_pb2.EvaluateHandsRequest(
                **self._common, hands=self._hands[piece].tobytes()
            )
            self._keep(piece, await self._stub.EvaluateHands(request))
        except BaseException:
            self.waiting.appendleft(piece)
            raise

    async def ask_on_a_stream(self) -> None:
        """Pieces as long as there are any."""
        sent: deque[slice] = deque()
        # The first one alone: it is the one that is refused, and nothing is being written then.
        room = asyncio.Semaphore(1)
        is_over = is_taken = False

        async def requests() -> AsyncIterator[evaluation_pb2.StreamHandsRequest]:
            while True:
                await room.acquire()
                if is_over or not self.waiting:
                    return
                piece = self.waiting.popleft()
                sent.append(piece)
                yield evaluation_pb2.StreamHandsRequest(
                    **self._common, hands=self._hands[piece].tobytes()
                )

        call = self._stub.StreamHands(requests())
        try:
            async for response in call:
                self._keep(sent[0], response)
                sent.popleft()
                for _ in range(1 if is_taken else _AHEAD):
                    room.release()
                is_taken = True
            if sent:
                raise RuntimeError(f"{len(sent)} messages were not answered")
        finally:
            is_over = True
            room.release()  # of a call that has ended, gRPC would wait for the next request
            call.cancel()
            self.waiting.extendleft(reversed(sent))

    def _keep(
        self,
        piece: slice,
        response: evaluation_pb2.EvaluateHandsResponse | evaluation_pb2.StreamHandsResponse,
    ) -> None:
        hands, size = piece.stop - piece.start, RESULT.itemsize
        if response.layout != LAYOUT or len(response.results) != hands * size:
            raise RuntimeError(
                f"{hands} hands had {len(response.results)} bytes of layout {response.layout}"
            )
        self.results[piece.start * size : piece.stop * size] = response.results
        self._done += hands
        if self._progress is not None:
            self._progress(self._done, len(self._hands))


_MELD = re.compile(r"\[([^][()]*)\]|\(([^][()]*)\)")
_DRAGONS = (45, 46, 47)
_HOW = {
    "chi": 0,
    "whirlwind": 0,
    "pong": 1,
    "exposed_kong": 2,
    "added_kong": 2,
    "concealed_kong": 3,
}
_TILES = sorted(tile for tile in notation.TILES if tile < 51)
"""The number of each kind."""
_KINDS = {tile: kind for kind, tile in enumerate(_TILES)}


def _kind(tile: int) -> int:
    kind = _KINDS.get(tile)
    if kind is None:
        raise ValueError(f"{tile} is no tile of a hand")
    return kind


def _is_meld(meld: Meld) -> bool:
    """Whether these tiles are a meld of that kind: a record tells no more than the lowest."""
    tiles = list(meld.tiles)
    if meld.kind not in _HOW or not tiles or not {*tiles} <= _KINDS.keys():
        return False
    first = tiles[0]
    if meld.kind == "chi":
        return first < 40 and tiles == [first, first + 1, first + 2]
    if meld.kind == "whirlwind":
        return {*tiles} == {*_DRAGONS} and all(tiles.count(dragon) <= 4 for dragon in _DRAGONS)
    return tiles == [first] * (3 if meld.kind == "pong" else 4)


def _meld(tiles: list[int], *, is_concealed: bool) -> Meld:
    if not tiles:
        raise ValueError("brackets without tiles")
    if is_concealed:
        return Meld("concealed_kong", tiles)
    tiles = sorted(tiles)
    if len(set(tiles)) == 1:
        return Meld("pong" if len(tiles) == 3 else "exposed_kong", tiles)
    return Meld("whirlwind" if tiles[0] == _DRAGONS[0] else "chi", tiles)


def _defaults(rules: rules_pb2.RuleSet) -> dict[str, int]:
    """The packed options, in their order."""
    specs = {spec.id: spec.default_value for spec in rules.options}
    # The one that is not set is 0; texts are never packed.
    return {id: specs[id].integer or specs[id].boolean for id in rules.packed_options}
