"""Whether the services fit together: rule sets, pools, tables, and where tables are played."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence

import grpc
import grpc.aio

from fangcheng.evaluation.v1 import evaluation_pb2, evaluation_pb2_grpc
from fangcheng.matchmaking.v1 import matchmaking_pb2, matchmaking_pb2_grpc
from fangcheng.table.v1 import state_pb2, table_pb2, table_pb2_grpc
from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from fangcheng_client import explain

from .deployment import Deployment, Way
from .findings import Finding, fails, fine, skipped, warns
from .reaching import ANSWER_SECONDS, probe, replicas, split

AUDIT_SECONDS = 300.0
"""A ledger of years takes minutes to be read."""
_PAGE = 500
_MOST_TABLES = 2_000
Known = Mapping[str, set[int]]
"""Rule sets and the revisions of each."""


async def known_rules(way: Way, addresses: Iterable[str]) -> dict[str, Known]:
    """What the evaluators at these addresses play, by the address of each process; without those
    that do not answer."""
    found: dict[str, Known] = {}
    for name in addresses:
        host, _ = split(name)
        for address in await replicas(name):
            async with way.open(address, server_name=host) as channel:
                stub = evaluation_pb2_grpc.EvaluationServiceStub(channel)
                try:
                    answer = await stub.ListRuleSets(
                        evaluation_pb2.ListRuleSetsRequest(), timeout=ANSWER_SECONDS
                    )
                except grpc.aio.AioRpcError:
                    continue  # which was found before, of the name
            rules: dict[str, set[int]] = {}
            for one in answer.rule_sets:
                rules.setdefault(one.id, set()).add(one.revision)
            found[address] = rules
    return found


def evaluators(found: Mapping[str, Known]) -> Iterator[Finding]:
    """Whether all evaluators play the same."""
    if not found:
        return
    all_of_them = {(id, one) for rules in found.values() for id in rules for one in rules[id]}
    for address, rules in found.items():
        lacks = {(id, one) for id, one in all_of_them if one not in rules.get(id, set())}
        if lacks:
            yield fails(
                "rule-sets",
                f"evaluation {address}",
                f"does not know {_listed(lacks)}, which others play",
                "Tables that ask it are refused and ask again; bulk evaluation fails at random.",
                "Run one release in all evaluators, with the same rule sets of your own in each.",
            )
    if all(
        {(id, one) for id in known for one in known[id]} == all_of_them for known in found.values()
    ):
        names = sorted({id for id, _ in all_of_them})
        yield fine(
            "rule-sets", "evaluation", f"all play {len(names)} rule sets: {', '.join(names)}"
        )


def _listed(rules: set[tuple[str, int]]) -> str:
    return ", ".join(f"{id} revision {revision}" for id, revision in sorted(rules))


async def pools(way: Way, address: str, found: Mapping[str, Known]) -> AsyncIterator[Finding]:
    """Whether the evaluators play what the pools say, and players are let in."""
    async with way.open(address) as channel:
        stub = matchmaking_pb2_grpc.MatchmakingServiceStub(channel)
        try:
            answer = await stub.ListPools(
                matchmaking_pb2.ListPoolsRequest(), timeout=ANSWER_SECONDS
            )
        except grpc.aio.AioRpcError:
            return  # which was found before
    for one in of_pools(answer.pools, found):
        yield one


def of_pools(
    listed: Sequence[matchmaking_pb2.Pool], found: Mapping[str, Known]
) -> Iterator[Finding]:
    """What is to be said of these pools."""
    unplayed = []
    for pool in listed:
        rules = pool.rules
        known = [one.get(rules.id, set()) for one in found.values()]
        if any(not one or (rules.revision and rules.revision not in one) for one in known):
            unplayed.append(f"{pool.pool_id} ({rules.id})")
        if pool.closed or pool.paused:
            yield warns(
                "pools",
                f"pool {pool.pool_id}",
                "an operator lets nobody in" if pool.closed else "an operator has paused it",
                "Players wait in vain, or are turned away.",
                "ResumePool, or the console's lobby, opens it when its reason is over.",
            )
    if unplayed:
        yield fails(
            "pools",
            "matchmaking",
            f"no evaluator, or not all, play the rule set of {', '.join(unplayed)}",
            "Nobody is seated in these pools.",
            "Install the rule set in all evaluators (`fangcheng rules` lists what this one has), "
            "or correct `rules` of the pool in the file of FANGCHENG_MATCHMAKING_POOLS.",
        )
    elif not listed:
        yield warns(
            "pools",
            "matchmaking",
            "there is no pool",
            "Nobody can queue.",
            "Name a file of pools in FANGCHENG_MATCHMAKING_POOLS: docs/matchmaking.md.",
        )
    else:
        what = "their rule sets are played" if found else "no evaluator was asked for their rules"
        yield fine("pools", "matchmaking", f"{len(listed)} pools; {what}")


async def tables(way: Way, address: str, found: Mapping[str, Known]) -> AsyncIterator[Finding]:
    """Whether the live tables go on: their revisions are played, their owners reached."""
    async with way.open(address) as channel:
        stub = table_pb2_grpc.TableServiceStub(channel)
        try:
            live = await _live(stub)
            troubles = await _troubles(stub)
        except (grpc.aio.AioRpcError, TimeoutError) as error:
            told = str(explain(error)) if isinstance(error, grpc.RpcError) else "no answer in time"
            yield fails(
                "tables",
                "table",
                f"its tables cannot be listed: {told}",
                "Lobbies and dashboards show nothing.",
                "Its log says more: `fangcheng logs` for a suite on this host.",
            )
            return
    for one in of_tables(live, troubles, found):
        yield one
    async for finding in _endpoints({table.endpoint for table in live if table.endpoint}):
        yield finding


def of_tables(
    live: Sequence[state_pb2.Table], troubles: Mapping[int, int], found: Mapping[str, Known]
) -> Iterator[Finding]:
    """What is to be said of these tables, which are open; `troubles`: how many have which."""
    lacking = {
        (table.rules.id, table.rules.revision)
        for table in live
        for rules in found.values()
        if table.rules.revision not in rules.get(table.rules.id, set())
    }
    if lacking:
        yield fails(
            "revisions",
            "table",
            f"live tables play {_listed(lacking)}, which not all evaluators know",
            "They stand still whenever they ask one that does not.",
            "Run evaluators of a release that has it until those tables have closed: "
            "docs/operations/runbooks/upgrade.md.",
        )
    for kind, count in sorted(troubles.items()):
        # A service of a later release may know kinds that are not known here.
        told, means, cure = _TROUBLES.get(kind, _TROUBLES[table_pb2.TABLE_TROUBLE_KIND_UNSPECIFIED])
        yield warns("tables", "table", f"{count} tables {told}", means, cure)
    if not troubles:
        yield fine("tables", "table", f"{len(live)} live tables, none in trouble")


async def _live(stub: table_pb2_grpc.TableServiceAsyncStub) -> list[state_pb2.Table]:
    request = table_pb2.ListTablesRequest(page_size=_PAGE)
    live: list[state_pb2.Table] = []
    while len(live) < _MOST_TABLES:
        answer = await stub.ListTables(request, timeout=ANSWER_SECONDS)
        live += answer.tables
        request.page_token = answer.next_page_token
        if not request.page_token:
            break
    return live


async def _troubles(
    stub: table_pb2_grpc.TableServiceAsyncStub,
) -> Counter[int]:
    """How many live tables have which trouble."""
    found: Counter[int] = Counter()
    async with asyncio.timeout(ANSWER_SECONDS):
        async for told in stub.WatchTables(table_pb2.WatchTablesRequest()):
            for table in told.changes.tables:
                found.update(int(one.kind) for one in table.troubles)
            if told.changes.complete:
                break
    return found


_TROUBLES: dict[int, tuple[str, str, str]] = {
    table_pb2.TABLE_TROUBLE_KIND_UNSPECIFIED: (
        "are in trouble of a kind that is not known here",
        "The service is newer than this command.",
        "Use the command of the service's release.",
    ),
    table_pb2.TABLE_TROUBLE_KIND_STUCK: (
        "stand still",
        "Nothing happens though something was due; their players wait.",
        "docs/operations/runbooks/stuck-table.md",
    ),
    table_pb2.TABLE_TROUBLE_KIND_EVALUATOR: (
        "wait for an evaluator",
        "No prompt is open there, and no clock runs.",
        "docs/operations/alerts/TablesWaitForEvaluators.md",
    ),
    table_pb2.TABLE_TROUBLE_KIND_WALLET: (
        "wait for the wallet",
        "What was played there is not paid yet.",
        "docs/operations/alerts/SettlementOutboxStuck.md",
    ),
    table_pb2.TABLE_TROUBLE_KIND_PARKED: (
        "were refused by the wallet",
        "They stand still until a person has mended it.",
        "docs/operations/alerts/SettlementParked.md",
    ),
    table_pb2.TABLE_TROUBLE_KIND_TAKEN_OVER: (
        "were taken over from a process that did not give them up",
        "It crashed, hung or lost its database lately; the tables go on.",
        "docs/operations/alerts/TablesTakenOver.md",
    ),
}
"""Of each kind: what is so, what it means, what to do."""


async def _endpoints(endpoints: set[str]) -> AsyncIterator[Finding]:
    """Whether players' clients come to the processes that play the tables."""
    lost = []
    for endpoint in sorted(endpoints):
        host, port = split(endpoint)
        try:
            await probe(host, port)
        except OSError as error:
            lost.append(f"{endpoint} ({error.strerror or error})")
    if lost:
        yield warns(
            "endpoints",
            "table",
            f"tables are played at {', '.join(lost)}, which is not reached from here",
            "Clients that connect to a table's `endpoint`, as they should, do not come to it; "
            "those that stay with the service's own address are forwarded.",
            "Set FANGCHENG_TABLE_ADVERTISED of each replica to an address that clients reach.",
        )
    elif endpoints:
        yield fine(
            "endpoints", "table", f"tables are played at {len(endpoints)} addresses, all reached"
        )


async def ledger(way: Way, address: str, *, is_quick: bool) -> AsyncIterator[Finding]:
    """Whether the ledger is as it should be, entry for entry."""
    if is_quick:
        yield skipped("ledger", "wallet", "the ledger was not audited", "Leave --quick out.")
        return
    async with way.open(address) as channel:
        stub = wallet_pb2_grpc.WalletServiceStub(channel)
        try:
            audit = await stub.AuditLedger(wallet_pb2.AuditLedgerRequest(), timeout=AUDIT_SECONDS)
        except grpc.aio.AioRpcError as error:
            problem = explain(error)
            yield warns(
                "ledger",
                "wallet",
                f"the ledger was not audited: {problem.message} [{problem.reason}]",
                "Whether it is balanced is not known.",
                "`fangcheng ledger audit` waits for as long as it takes.",
            )
            return
    if audit.findings:
        yield fails(
            "ledger",
            "wallet",
            f"the ledger is not as it should be: {'; '.join(audit.findings[:3])}",
            "Balances are not what the entries say.",
            "Stop the wallet and look: docs/operations/alerts/LedgerImbalance.md.",
        )
    else:
        yield fine("ledger", "wallet", f"the ledger is balanced: {audit.entries:,} entries")


async def page(deployment: Deployment) -> AsyncIterator[Finding]:
    """Whether the console answers browsers."""
    if not deployment.page:
        return
    host, port = split(deployment.page.removeprefix("http://"))
    try:
        await probe(host, port)
    except OSError as error:
        yield fails(
            "page",
            "console",
            f"the console's page {deployment.page} is not reached: {error.strerror or error}",
            "Operators see nothing.",
            "`fangcheng logs` shows what the console said last.",
        )
    else:
        yield fine("page", "console", f"the console's page is at {deployment.page}")
