"""From players to processes, databases and network: plain arithmetic on measured costs.

Everything is proportional to what happens in a second at the busiest time: acts, hands, new seats.
A service has enough replicas when none of their cores is busier than `busy_share`, and one more,
so that one may be away. A process of ours keeps one core busy at most; PostgreSQL uses as many as
it is given.

Where a figure cannot grow by more processes, a suite is at its end (`Limit`), and the players are
shared out among several suites, here *cells*: each with its own PostgreSQL and all services.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

SEATS = 4
SECONDS_OF_AN_HOUR = 3_600
HOURS_OF_A_DAY = 24
SERVICES = ("evaluation", "table", "wallet", "matchmaking")


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What players do. Shares are of 1; times in seconds."""

    seated_share: float = 0.85
    """Of those who are online, at a table."""
    queued_share: float = 0.03
    """In a queue; the rest look around."""
    turn_seconds: float = 4.0
    """From one discard at a table to the next: thinking and the claim window."""
    between_hands_seconds: float = 10.0
    """From the end of a hand to the next deal, the showing of results included."""
    discards_per_hand: float = 40.0
    hands_per_table: float = 8.0
    spectators_per_table: float = 0.2
    analyses_per_hour: float = 30.0
    """Hands that a player's client has analysed, such as for hints."""
    reads_per_hour: float = 30.0
    """Balances and statements that a player looks at."""
    average_load: float = 0.47
    """Players online over a day, as a share of those at its busiest time."""
    busy_share: float = 0.6
    """How busy a core may be at the busiest time."""
    spare_replicas: int = 1
    """Of each service, beyond those that are needed."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What was measured; CPU in milliseconds, sizes in bytes."""

    acts_per_discard: float
    """Answers of players to what they are asked."""
    table_ms_per_act: float
    evaluation_ms_per_act: float
    evaluation_ms_per_analysis: float
    matchmaking_ms_per_seat: float
    """From joining the queue to the seat."""
    wallet_ms_per_seat: float
    """Holds set aside, handed over and released."""
    wallet_ms_per_hand: float
    wallet_ms_per_read: float
    postgresql_ms_per_hand: float
    table_bytes: float
    """Memory of a live table in its service."""
    process_bytes: dict[str, float]
    """Memory of a process that has just begun to serve, by service."""
    journal_bytes_per_hand: float
    """Tables and indexes in PostgreSQL."""
    ledger_bytes_per_hand: float
    queues_bytes_per_seat: float
    """Kept for `FANGCHENG_MATCHMAKING_KEEP_DAYS`, unlike the two above."""
    log_bytes_per_hand: float
    """PostgreSQL's write-ahead log, which a standby or an archive is sent."""
    seat_bytes_per_hand: float
    """To and from a player's client."""
    spectator_bytes_per_hand: float
    settlements_per_second: float
    """The most that one ledger was seen to write."""
    seats_per_second: float
    """The most at which one matchmaking process would be busy all the time."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What happens, at the busiest time and in a day."""

    tables: float
    hands_per_second: float
    acts_per_second: float
    seats_per_second: float
    analyses_per_second: float
    reads_per_second: float
    streams: float
    hands_per_day: float
    seats_per_day: float


@dataclass(frozen=True, slots=True)
class Service:
    """The processes of one service."""

    name: str
    busy_cores: float
    """CPU time a second."""
    replicas: int
    """A core each."""
    memory_bytes: float
    """Of all replicas."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What one suite cannot exceed by more processes."""

    name: str
    most_players: float
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What is needed, of all cells together."""

    players: int
    cells: int
    pace: Pace
    services: tuple[Service, ...]
    database_busy_cores: float
    database_cores: int
    """Of the primaries; each has a standby of the same size besides."""
    growth_bytes_per_day: float
    """Of journal and ledger."""
    queues_bytes_per_day: float
    log_bytes_per_day: float
    network_bits_per_second: float
    """At the busiest time, to and from clients."""
    network_bytes_per_day: float
    limits: tuple[Limit, ...]

    @property
    def cores(self) -> int:
        """Of all services and databases, standbys included."""
        return sum(service.replicas for service in self.services) + 2 * self.database_cores

    @property
    def memory_bytes(self) -> float:
        """Of all processes of ours."""
        return sum(service.memory_bytes for service in self.services)


def pace_of(players: float, given: Assumptions, costs: Costs) -> Pace:
    """What so many players make happen."""
    tables = players * given.seated_share / SEATS
    hand_seconds = given.discards_per_hand * given.turn_seconds + given.between_hands_seconds
    hands = tables / hand_seconds
    seats = SEATS * hands / given.hands_per_table
    seconds_of_a_day = HOURS_OF_A_DAY * SECONDS_OF_AN_HOUR * given.average_load
    spectators = tables * given.spectators_per_table
    return Pace(
        tables=tables,
        hands_per_second=hands,
        acts_per_second=hands * given.discards_per_hand * costs.acts_per_discard,
        seats_per_second=seats,
        analyses_per_second=players * given.analyses_per_hour / SECONDS_OF_AN_HOUR,
        reads_per_second=players * given.reads_per_hour / SECONDS_OF_AN_HOUR,
        streams=players * (given.seated_share + given.queued_share) + spectators,
        hands_per_day=hands * seconds_of_a_day,
        seats_per_day=seats * seconds_of_a_day,
    )


def plan_for(players: int, given: Assumptions, costs: Costs, cells: int | None = None) -> Plan:
    """What so many players need; `cells`: as many as the limits ask for, where it is not given."""
    limits = limits_of(given, costs)
    if cells is None:
        cells = max(1, *(math.ceil(players / limit.most_players) for limit in limits))
    pace, share = pace_of(players, given, costs), pace_of(players / cells, given, costs)
    services = tuple(
        _service(name, busy, cells, share, given, costs)
        for name, busy in busy_cores(share, costs).items()
    )
    database_busy = share.hands_per_second * costs.postgresql_ms_per_hand / 1_000
    spectated = given.spectators_per_table * costs.spectator_bytes_per_hand
    hand_bytes = SEATS * costs.seat_bytes_per_hand + spectated
    return Plan(
        players=players,
        cells=cells,
        pace=pace,
        services=services,
        database_busy_cores=cells * database_busy,
        database_cores=cells * max(1, math.ceil(database_busy / given.busy_share)),
        growth_bytes_per_day=pace.hands_per_day
        * (costs.journal_bytes_per_hand + costs.ledger_bytes_per_hand),
        queues_bytes_per_day=pace.seats_per_day * costs.queues_bytes_per_seat,
        log_bytes_per_day=pace.hands_per_day * costs.log_bytes_per_hand,
        network_bits_per_second=8 * pace.hands_per_second * hand_bytes,
        network_bytes_per_day=pace.hands_per_day * hand_bytes,
        limits=limits,
    )


def busy_cores(pace: Pace, costs: Costs) -> dict[str, float]:
    """CPU seconds a second, by service."""
    milliseconds = {
        "evaluation": pace.acts_per_second * costs.evaluation_ms_per_act
        + pace.analyses_per_second * costs.evaluation_ms_per_analysis,
        "table": pace.acts_per_second * costs.table_ms_per_act,
        "wallet": pace.hands_per_second * costs.wallet_ms_per_hand
        + pace.seats_per_second * costs.wallet_ms_per_seat
        + pace.reads_per_second * costs.wallet_ms_per_read,
        "matchmaking": pace.seats_per_second * costs.matchmaking_ms_per_seat,
    }
    return {name: milliseconds[name] / 1_000 for name in SERVICES}


def limits_of(given: Assumptions, costs: Costs) -> tuple[Limit, ...]:
    """Where a suite ends, in players; the least comes first."""
    one = pace_of(1, given, costs)
    limits = (
        Limit(
            "ledger",
            given.busy_share * costs.settlements_per_second / one.hands_per_second,
            "the operations of a ledger are one sequence, which one PostgreSQL writes",
        ),
        Limit(
            "queues",
            given.busy_share * costs.seats_per_second / one.seats_per_second,
            "a pool is matched by one process at a time; replicas share several pools",
        ),
    )
    return tuple(sorted(limits, key=lambda limit: limit.most_players))


def _service(
    name: str, busy: float, cells: int, share: Pace, given: Assumptions, costs: Costs
) -> Service:
    replicas = max(1, math.ceil(busy / given.busy_share)) + given.spare_replicas
    # A replica that is away leaves its tables to the others.
    tables_bytes = share.tables * costs.table_bytes if name == "table" else 0.0
    return Service(
        name=name,
        busy_cores=cells * busy,
        replicas=cells * replicas,
        memory_bytes=cells * (replicas * costs.process_bytes[name] + tables_bytes),
    )
