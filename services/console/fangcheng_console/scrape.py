"""What the processes measure of themselves, read from each one's `/metrics` every few seconds.

    scraper = Scraper(targets("table=127.0.0.1:7201,wallet=127.0.0.1:7202"))
    async with scraper.running(): ...
    sum(one.value("fangcheng_tables") or 0 for one in scraper.of("table"))

Kept are the few series that the console shows, summed over the labels that it does not, for the
last quarter of an hour; whoever wants more has Prometheus. A counter that begins anew with its
process does not make anything negative, and a process that does not answer stays, as away.
"""

from __future__ import annotations

import asyncio
import http.client
import math
import re
import socket
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from itertools import pairwise

import structlog

from fangcheng_kit.background import running

SCRAPE_SECONDS = 5.0
ANSWER_SECONDS = 3.0
"""A process that takes longer to tell its metrics counts as away."""
KEPT_SECONDS = 15 * 60.0
THINNED_SECONDS = 15.0
"""What is older than a minute is kept this far apart."""
RECENT_SECONDS = 60.0
FORGOTTEN_SECONDS = 15 * 60.0
"""An address that its name does not stand for any more is told as away for so long."""
LARGEST_BYTES = 4 * 1024 * 1024

Key = tuple[str, ...]
"""The values of the labels by which a metric is kept."""
Snapshot = dict[str, dict[Key, float]]
"""What a process told at one time: by metric, its series."""

SERIES: Mapping[str, tuple[str, ...]] = {
    "fangcheng_build_info": ("service", "version"),
    "fangcheng_certificate_expires_timestamp_seconds": ("certificate",),
    "fangcheng_certificate_files_bad": (),
    "fangcheng_event_loop_lag_seconds_bucket": ("le",),
    "fangcheng_key_set_failures_total": (),
    "grpc_server_handled_total": ("grpc_code", "grpc_type", "grpc_method"),
    "process_cpu_seconds_total": (),
    "process_resident_memory_bytes": (),
    "process_start_time_seconds": (),
    "fangcheng_evaluation_busy_threads": (),
    "fangcheng_evaluation_hands_total": (),
    "fangcheng_evaluation_refused_calls_total": ("lane",),
    "fangcheng_evaluation_threads": (),
    "fangcheng_evaluation_waiting_hands": ("lane",),
    "fangcheng_evaluation_waiting_hands_limit": ("lane",),
    "fangcheng_evaluation_work_seconds_sum": (),
    "fangcheng_matchmaking_fill_after_seconds": ("pool",),
    "fangcheng_matchmaking_matches_total": ("pool", "outcome"),
    "fangcheng_matchmaking_oldest_ticket_age_seconds": ("pool",),
    "fangcheng_matchmaking_paused": ("pool",),
    "fangcheng_matchmaking_repeated_steps_total": (),
    "fangcheng_matchmaking_unfinished_matches": (),
    "fangcheng_matchmaking_wait_seconds_bucket": ("le",),
    "fangcheng_matchmaking_waiting_tickets": ("pool", "kind"),
    "fangcheng_table_act_seconds_bucket": ("le",),
    "fangcheng_table_evaluator_failures_total": (),
    "fangcheng_table_evaluator_questions": (),
    "fangcheng_table_evaluator_wait_seconds_bucket": ("le",),
    "fangcheng_table_failures_total": (),
    "fangcheng_table_hands_total": (),
    "fangcheng_table_journal_commit_seconds_bucket": ("le",),
    "fangcheng_table_journal_failures_total": (),
    "fangcheng_table_outbox": ("kind",),
    "fangcheng_table_outbox_oldest_age_seconds": ("kind",),
    "fangcheng_table_parked": ("kind",),
    "fangcheng_table_taken_over_total": (),
    "fangcheng_table_trustee_seats": (),
    "fangcheng_table_unowned": (),
    "fangcheng_tables": ("phase",),
    "fangcheng_wallet_commit_seconds_bucket": ("le",),
    "fangcheng_wallet_ledger_imbalance": ("currency",),
    "fangcheng_wallet_oldest_hold_age_seconds": (),
    "fangcheng_wallet_open_holds": (),
    "fangcheng_wallet_settlements_total": ("outcome",),
    "fangcheng_wallet_unchained_operations": (),
}
"""What is kept, and by which labels."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where metrics are to be read; a name stands for every address that it has."""

    service: str
    """Of whom, as configured; empty: whoever answers tells."""
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def targets(text: str) -> list[Target]:
    """The targets of a setting: `host:port` or `service=host:port`, separated by commas.

    `ValueError` names the entry that is none.
    """
    found = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        service, _, address = entry.rpartition("=")
        host, colon, port = address.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not (host and colon and port.isascii() and port.isdigit() and 0 < int(port) <= 65535):
            raise ValueError(
                f"{entry!r} names no metrics endpoint: expected HOST:PORT or SERVICE=HOST:PORT, "
                "such as table=127.0.0.1:7201"
            )
        found.append(Target(service.strip(), host, int(port)))
    return found


_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def parse(text: str) -> Snapshot:
    """The series of an answer that are kept, in Prometheus' text format.

    Lines of other metrics are left out before anything of them is read: an answer has a thousand,
    and some hundred of them count.
    """
    found: Snapshot = {}
    for line in text.splitlines():
        end = line.find("{")
        name = line[: end if end >= 0 else line.find(" ")]
        kept = SERIES.get(name)
        if kept is None:
            continue
        labels, _, value = line.rpartition(" ")
        told = dict(_LABEL.findall(labels)) if kept else {}
        key = tuple(told.get(label, "") for label in kept)
        series = found.setdefault(name, {})
        series[key] = series.get(key, 0.0) + float(value)
    return found


def total(values: Iterable[float | None]) -> float | None:
    """The sum of what is known; `None` where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def added(buckets: Iterable[Mapping[float, float]]) -> dict[float, float]:
    """The observations of several processes together."""
    together: dict[float, float] = {}
    for some in buckets:
        for bound, count in some.items():
            together[bound] = together.get(bound, 0.0) + count
    return together


def quantile(share: float, buckets: Mapping[float, float]) -> float | None:
    """The value that `share` of the observations lie below, from how many lie below each bound.

    As Prometheus' `histogram_quantile`: evenly spread within a bucket; `None` without observations.
    """
    bounds = sorted(buckets)
    total = buckets[bounds[-1]] if bounds else 0.0
    if total <= 0:
        return None
    rank, lower, below = share * total, 0.0, 0.0
    for bound in bounds:
        count = buckets[bound]
        if count >= rank:
            if math.isinf(bound):
                return lower
            inside = count - below
            return lower + (bound - lower) * ((rank - below) / inside if inside > 0 else 1.0)
        lower, below = bound, count
    return lower


@dataclass(slots=True)
class Process:
    """One process, as it has told of itself."""

    address: str
    """Where its metrics are read."""
    configured: str = ""
    """Whose it is as configured; may be empty."""
    away_since: float | None = None
    """Since when it does not answer, a Unix time; `None`: it has just answered."""
    trouble: str = ""
    """Why it did not."""
    seen_at: float | None = None
    """When it answered last; `None`: never."""
    listed_at: float = 0.0
    """When its name stood for this address last."""
    starts: deque[float] = field(default_factory=lambda: deque(maxlen=16))
    """When it was started, those starts that were seen."""
    _older: deque[tuple[float, Snapshot]] = field(default_factory=deque)
    _recent: deque[tuple[float, Snapshot]] = field(default_factory=deque)

    @property
    def now(self) -> Snapshot:
        """What it told last."""
        return self._recent[-1][1] if self._recent else {}

    @property
    def service(self) -> str:
        """Its service; empty where nobody knows yet."""
        return self._build[0] or self.configured

    @property
    def version(self) -> str:
        """Of its service's package; empty where it never answered."""
        return self._build[1]

    @property
    def _build(self) -> Key:
        return next(iter(self.now.get("fangcheng_build_info", ())), ("", ""))

    def heard(self, at: float, told: Snapshot) -> None:
        """It has answered."""
        self.away_since, self.trouble, self.seen_at = None, "", at
        started = told.get(_START, {}).get(())
        if started is not None and started not in self.starts:
            self.starts.append(started)
        self._recent.append((at, told))
        while self._recent[0][0] < at - RECENT_SECONDS - SCRAPE_SECONDS:
            one = self._recent.popleft()
            if not self._older or one[0] - self._older[-1][0] >= THINNED_SECONDS:
                self._older.append(one)
        while self._older and self._older[0][0] < at - KEPT_SECONDS:
            self._older.popleft()

    def lost(self, at: float, why: str) -> None:
        """It has not answered."""
        self.trouble = why
        if self.away_since is None:
            self.away_since = at

    def series(self, name: str) -> Mapping[Key, float]:
        """What it told last of a metric, by the values of its labels."""
        return self.now.get(name, {})

    def value(self, name: str, *labels: str) -> float | None:
        """A gauge as it was told last, summed over labels that are not given; `None`: not told."""
        series = self.series(name)
        found = [value for key, value in series.items() if key[: len(labels)] == labels]
        return sum(found) if found else None

    def increases(self, name: str, within_seconds: float) -> dict[Key, float]:
        """How much each series of a counter has grown, by the values of its labels.

        A process that was started anew counts from 0 again: all that it has told since is growth.
        """
        grown: dict[Key, float] = {}
        told = [snapshot for _, snapshot in self._window(within_seconds)]
        for before, after in pairwise(told):
            is_new = before.get(_START) != after.get(_START)
            old = {} if is_new else before.get(name, {})
            for key, value in after.get(name, {}).items():
                step = value - old.get(key, 0.0)
                grown[key] = grown.get(key, 0.0) + (step if step >= 0 else value)
        return grown

    def increase(self, name: str, within_seconds: float, *labels: str) -> float:
        """The growth of a counter, summed over labels that are not given."""
        grown = self.increases(name, within_seconds)
        return sum(value for key, value in grown.items() if key[: len(labels)] == labels)

    def rate(self, name: str, within_seconds: float = RECENT_SECONDS, *labels: str) -> float | None:
        """The growth of a counter a second; `None`: it was not seen for long enough."""
        window = self._window(within_seconds)
        seconds = window[-1][0] - window[0][0] if window else 0.0
        return self.increase(name, within_seconds, *labels) / seconds if seconds > 0 else None

    def buckets(self, name: str, within_seconds: float) -> dict[float, float]:
        """Observations of a histogram within a time: how many lie below each bound."""
        return {float(key[-1]): n for key, n in self.increases(name, within_seconds).items()}

    def _window(self, within_seconds: float) -> list[tuple[float, Snapshot]]:
        if not self._recent:
            return []
        # What is half a step too old still counts: a minute's rate has a minute to go by.
        since = self._recent[-1][0] - within_seconds - SCRAPE_SECONDS / 2
        kept = [*self._older, *self._recent] if within_seconds > RECENT_SECONDS else self._recent
        return [one for one in kept if one[0] >= since]


_START = "process_start_time_seconds"


def fetch(host: str, port: int) -> str:
    """Read an address' `/metrics`; raises `OSError` or `http.client.HTTPException`. Blocks."""
    connection = http.client.HTTPConnection(host, port, timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", "/metrics", headers={"Accept": "text/plain"})
        answer = connection.getresponse()
        body = answer.read(LARGEST_BYTES)
    finally:
        connection.close()
    if answer.status != http.client.OK:
        raise OSError(f"it answers {answer.status} {answer.reason}")
    return body.decode()


async def addresses(target: Target) -> list[str]:
    """Every address that a target's name stands for; raises `OSError` for a name unknown."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    return [str(Target("", str(one[4][0]), target.port)) for one in found]


LookUp = Callable[[Target], Awaitable[list[str]]]


class Scraper:
    """Reads all processes again and again, and keeps what they have told lately."""

    def __init__(self, targets: Sequence[Target], look_up: LookUp = addresses) -> None:
        self.targets = targets
        self.processes: dict[str, Process] = {}
        """By address."""
        self.rounds = 0
        """How often all have been asked."""
        self.on_round: Callable[[], None] = lambda: None
        """Told whenever all processes have been asked."""
        self._look_up = look_up

    def known(self, service: str) -> list[Process]:
        """The processes of a service, those too that do not answer."""
        return [one for one in self.processes.values() if one.service == service]

    def of(self, service: str) -> list[Process]:
        """The processes of a service that answer."""
        return [one for one in self.known(service) if one.away_since is None]

    def running(self) -> AbstractAsyncContextManager[None]:
        """Reads while the `async with` lasts."""
        return running(self._run())

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + SCRAPE_SECONDS
            try:
                await self.scrape()
                self.on_round()
            except Exception:
                structlog.get_logger().exception("scraping failed")
            await asyncio.sleep(due - loop.time())

    async def scrape(self) -> None:
        """Ask every process once."""
        now = time.time()
        names = [self._look_up(target) for target in self.targets]
        found = await asyncio.gather(*names, return_exceptions=True)
        listed: dict[str, Process] = {}
        for target, there in zip(self.targets, found, strict=True):
            if isinstance(there, BaseException):
                nobody = self._process(str(target), target, now)
                nobody.lost(now, f"the name {target.host} is unknown: {there}")
                continue
            for address in there:
                listed[address] = self._process(address, target, now)
        for address, process in list(self.processes.items()):
            if process.listed_at == now:
                continue
            process.lost(now, "its name does not stand for this address any more")
            if process.seen_at is None or now - process.listed_at > FORGOTTEN_SECONDS:
                del self.processes[address]
        await asyncio.gather(*(self._read(process) for process in listed.values()))
        self.rounds += 1

    def _process(self, address: str, target: Target, now: float) -> Process:
        process = self.processes.setdefault(address, Process(address))
        process.configured, process.listed_at = target.service, now
        return process

    async def _read(self, process: Process) -> None:
        host, _, port = process.address.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        try:
            told = await asyncio.to_thread(lambda: parse(fetch(host, int(port))))
        except (OSError, http.client.HTTPException, ValueError) as error:
            process.lost(time.time(), str(error) or type(error).__name__)
        else:
            process.heard(time.time(), told)
