"""Fakes of the services that a table calls: a true evaluator here, a wallet that obeys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio

from fangcheng.evaluation.v1 import evaluation_pb2 as evaluation
from fangcheng.evaluation.v1 import evaluation_pb2_grpc
from fangcheng.rules.v1 import rules_pb2 as rules
from fangcheng.wallet.v1 import settlement_pb2 as wallet
from fangcheng.wallet.v1 import settlement_pb2_grpc
from fangcheng_evaluation.convert import finished_from_wire
from fangcheng_rules import analysis as core
from fangcheng_rules import scoring
from fangcheng_rules.hand import Hand
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.rulesets import RULE_SETS, rule_set
from fangcheng_rules.tiles import code, from_code
from fangcheng_table.convert import options_from_wire
from fangcheng_table.convert_play import reading_to_wire, score_to_wire

Context = Any


class Switch:
    """Whether a service answers, and how it refuses."""

    def __init__(self) -> None:
        self.code: grpc.StatusCode | None = None
        self.calls: list[Any] = []
        self.spoil: Callable[[Any], None] = lambda answer: None
        """What is done to an answer before it is given."""

    async def check(self, request: Any, context: Context) -> None:
        self.calls.append(request)
        if self.code is not None:
            await context.abort(self.code, "as the test wants it")


class FakeEvaluation(evaluation_pb2_grpc.EvaluationServiceServicer):
    """Answers what the rules core answers."""

    def __init__(self) -> None:
        self.switch = Switch()

    async def ListRuleSets(self, request: Any, context: Context) -> Any:
        await self.switch.check(request, context)
        return evaluation.ListRuleSetsResponse(
            rule_sets=[rules.RuleSet(id=known.id, revision=known.revision) for known in RULE_SETS]
        )

    async def AnalyzeBatch(self, request: Any, context: Context) -> Any:
        await self.switch.check(request, context)
        answer = evaluation.AnalyzeBatchResponse(
            results=[
                evaluation.AnalyzeResult(analysis=self._analyze(one)) for one in request.requests
            ]
        )
        self.switch.spoil(answer)
        return answer

    async def ScoreBatch(self, request: Any, context: Context) -> Any:
        await self.switch.check(request, context)
        return evaluation.ScoreBatchResponse(
            results=[evaluation.ScoreResult(score=self._score(one)) for one in request.requests]
        )

    def _analyze(self, request: evaluation.AnalyzeRequest) -> evaluation.Analysis:
        known, options = _rules(request.rules)
        hand = Hand(_kinds(request.hand.concealed), _melds(request.hand.melds))
        found = core.analyze(known, options, hand)
        return evaluation.Analysis(
            wins=found.wins,
            readings=[reading_to_wire(reading) for reading in found.readings],
            waits=_waits(found.waits),
            discards=[
                evaluation.DiscardChoice(tile=code(choice.tile), waits=_waits(choice.waits))
                for choice in found.discards
            ],
            kongs=[
                evaluation.KongChoice(
                    tile=code(choice.tile), kind=choice.kind, waits=_waits(choice.waits)
                )
                for choice in found.kongs
            ],
        )

    def _score(self, request: evaluation.ScoreRequest) -> rules.Score:
        known, options = _rules(request.rules)
        return score_to_wire(scoring.score(known, options, finished_from_wire(request.hand)), known)


def _rules(choice: rules.RuleSetChoice) -> tuple[Any, Mapping[str, Any]]:
    known = rule_set(choice.id, choice.revision)
    return known, known.complete(options_from_wire(choice.options))


def _kinds(codes: Any) -> tuple[int, ...]:
    return tuple(sorted(from_code(tile) for tile in codes))


def _melds(melds: Any) -> tuple[Meld, ...]:
    return tuple(
        Meld(
            MeldKind(meld.kind),
            _kinds(meld.tiles),
            meld.from_seat if meld.HasField("from_seat") else None,
            from_code(meld.claimed_tile) if meld.claimed_tile else None,
        )
        for meld in melds
    )


def _waits(waits: tuple[core.Wait, ...]) -> list[evaluation.Wait]:
    return [evaluation.Wait(tile=code(wait.tile), least_fan=wait.least_fan) for wait in waits]


class FakeWallet(settlement_pb2_grpc.SettlementServiceServicer):
    """Pays everything in full, once for each key; keeps what it was asked."""

    def __init__(self) -> None:
        self.settling = Switch()
        self.releasing = Switch()
        self.keeping = Switch()
        self.settled: dict[str, wallet.SettleRequest] = {}
        self.released: list[str] = []

    async def Settle(self, request: wallet.SettleRequest, context: Context) -> Any:
        await self.settling.check(request, context)
        replayed = request.key in self.settled
        if replayed and self.settled[request.key] != request:
            await context.abort(grpc.StatusCode.ALREADY_EXISTS, "another body")
        self.settled[request.key] = request
        settlement = wallet.Settlement(
            key=request.key,
            parties=request.parties,
            transfers=[
                wallet.SettledTransfer(transfer=transfer, paid=transfer.amount)
                for transfer in request.transfers
            ],
            fees=[wallet.SettledFee(fee=fee, paid=fee.amount) for fee in request.fees],
        )
        answer = wallet.SettleResponse(settlement=settlement, replayed=replayed)
        self.settling.spoil(answer)
        return answer

    async def HandOverHolds(self, request: wallet.HandOverHoldsRequest, context: Context) -> Any:
        await self.keeping.check(request, context)
        return wallet.HandOverHoldsResponse()

    async def ReleaseHolds(self, request: wallet.ReleaseHoldsRequest, context: Context) -> Any:
        await self.releasing.check(request, context)
        self.released += request.hold_ids
        return wallet.ReleaseHoldsResponse()


@asynccontextmanager
async def serving(evaluator: FakeEvaluation, payer: FakeWallet) -> AsyncIterator[str]:
    """Both services on one server; its address."""
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    evaluation_pb2_grpc.add_EvaluationServiceServicer_to_server(evaluator, server)
    settlement_pb2_grpc.add_SettlementServiceServicer_to_server(payer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)
