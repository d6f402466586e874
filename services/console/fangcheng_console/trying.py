"""Try a hand: what the evaluator says of tiles that somebody has put together.

The page asks in the evaluator's own messages, so that what it refuses names a field that the page
knows; the answers are the evaluator's own too, with the tiles that are left counted beside them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fangcheng.evaluation.v1 import evaluation_pb2
from fangcheng.rules.v1 import rules_pb2

from .plain import plain
from .problems import Refused
from .rule_sets import as_json
from .session import Person, viewer
from .web import Console, Part, body_of

M = TypeVar("M", bound=Message)


def analysed(
    asked: evaluation_pb2.AnalyzeRequest,
    analysis: evaluation_pb2.Analysis,
    tiles: Mapping[int, int],
) -> dict[str, Any]:
    """An analysis as the page shows it. `tiles`: how many of each the rule set has.

    Each wait has `left`, the copies that the hand itself does not hold, and so has each useful tile
    (`useful`: `[{tile, left}]`); lists of them have their sum beside them (`waits_left`,
    `useful_left`). Discards are sorted, the best first: fewest steps to a ready hand, then most
    useful tiles left; those that are alike in both have the same `rank` and stand in the tiles'
    order.
    """
    own = _held(asked.hand)

    def left(tile: int) -> int:
        # A tile that was discarded counts with the hand: it comes to it no more.
        return max(tiles.get(tile, 0) - own[tile], 0)

    def waits(found: Iterable[evaluation_pb2.Wait]) -> list[dict[str, Any]]:
        return [{**plain(wait), "left": left(wait.tile)} for wait in found]

    def useful(found: Iterable[int]) -> list[dict[str, int]]:
        return [{"tile": tile, "left": left(tile)} for tile in found]

    told: dict[str, Any] = plain(analysis)
    told["waits"] = waits(analysis.waits)
    told["useful"] = useful(analysis.useful_tiles)
    for key, kongs in (("kongs", analysis.kongs), ("claim_kongs", analysis.claim_kongs)):
        told[key] = [{**plain(kong), "waits": waits(kong.waits)} for kong in kongs]
    told["discards"] = []
    for choice in analysis.discards:
        entry = {
            "tile": choice.tile,
            "shanten": choice.shanten,
            "waits": waits(choice.waits),
            "useful": useful(choice.useful_tiles),
        }
        told["discards"].append(_summed(entry))
    told["discards"].sort(key=_quality)
    for place, entry in enumerate(told["discards"]):
        before = told["discards"][place - 1] if place else None
        alike = before is not None and _quality(before)[:2] == _quality(entry)[:2]
        entry["rank"] = before["rank"] if before is not None and alike else place + 1
    return _summed(told)


def _summed(told: dict[str, Any]) -> dict[str, Any]:
    for key in ("waits", "useful"):
        told[f"{key}_left"] = sum(one["left"] for one in told[key])
    told.pop("useful_tiles", None)
    return told


def _quality(choice: dict[str, Any]) -> tuple[int, int, int]:
    return choice["shanten"], -choice["useful_left"], choice["tile"]


def _held(hand: evaluation_pb2.Hand) -> Counter[int]:
    return Counter((*hand.concealed, *(tile for meld in hand.melds for tile in meld.tiles)))


def scored(score: rules_pb2.Score) -> dict[str, Any]:
    """A score as the page shows it, with what each seat and the house have won or lost (`net`)."""
    net = [0, 0, 0, 0]
    for transfer in score.transfers:
        if transfer.HasField("from_seat"):
            net[transfer.from_seat] -= transfer.amount
        if transfer.HasField("to_seat"):
            net[transfer.to_seat] += transfer.amount
    return {**plain(score), "net": net, "house": -sum(net)}


async def _asked(request: Request, kind: type[M]) -> M:
    """The body as a message; refused with what protobuf's JSON says is wrong."""
    try:
        return ParseDict(await body_of(request), kind())
    except ParseError as error:
        raise Refused(400, "INVALID_REQUEST", f"no {kind.DESCRIPTOR.name}: {error}") from None


def feature(console: Console) -> Part:
    """`GET /api/rule-sets`, `POST /api/try/analyze` and `POST /api/try/score`.

    The bodies are an `AnalyzeRequest` and a `ScoreRequest` in protobuf's JSON.
    """

    @viewer
    async def listed(request: Request, person: Person) -> Response:
        return JSONResponse({"rule_sets": as_json(await console.rule_sets.known())})

    @viewer
    async def analyze(request: Request, person: Person) -> Response:
        asked = await _asked(request, evaluation_pb2.AnalyzeRequest)
        asked.progress = True
        found = await console.backend.evaluation.Analyze(asked)
        rules = await console.rule_sets.find(asked.rules.id, asked.rules.revision)
        tiles = Counter(rules.tiles if rules is not None else ())
        return JSONResponse({"analysis": analysed(asked, found.analysis, tiles)})

    @viewer
    async def score(request: Request, person: Person) -> Response:
        asked = await _asked(request, evaluation_pb2.ScoreRequest)
        found = await console.backend.evaluation.Score(asked)
        return JSONResponse({"score": scored(found.score)})

    return Part(
        [
            Route("/api/rule-sets", listed),
            Route("/api/try/analyze", analyze, methods=["POST"]),
            Route("/api/try/score", score, methods=["POST"]),
        ]
    )
