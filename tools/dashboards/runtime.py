"""Runtime: every process: is it up, which version, what it uses, what it answers."""

from __future__ import annotations

from .board import Board, Limits, Link, Panel, Query, Row, Variable, stat
from .promql import FAILED, or_zero, percentile, rate

MINE = 'job=~"$job", instance=~"$instance"'
UP = f"up{{{MINE}}}"
CALLS = f"grpc_server_handled_total{{{MINE}}}"
LAG = percentile(
    0.99, f"fangcheng_event_loop_lag_seconds_bucket{{{MINE}}}", UP, job="none", instance=""
)
SLOWEST = percentile(
    0.99,
    f'grpc_server_handling_seconds_bucket{{{MINE}, grpc_type="unary"}}',
    UP,
    job="none",
    grpc_method="",
)
OTHERS = FAILED.replace("=~", "!~")
EACH = "{{job}} {{instance}}"


def _each(promql: str) -> tuple[Query, ...]:
    """A query with a series for each process."""
    return (Query(promql, EACH),)


_TILES = (
    stat(
        "Processes down",
        "Processes that Prometheus knows of and does not reach. Start them again, then read in "
        "their logs why they stopped.",
        "none",
        or_zero(f"count({UP} == 0)", UP),
        Limits(1, 1),
    ),
    stat(
        "Versions",
        "How many versions run. More than one for longer than a deployment takes: it is stuck "
        "half way, or was taken back only in part.",
        "none",
        f"count(count by (version) (fangcheng_build_info{{{MINE}}}))",
    ),
    stat(
        "Youngest process",
        "Time since the last start of any. Minutes without a deployment: something is restarted "
        "again and again; the marks in the graphs say when.",
        "s",
        f"time() - max(process_start_time_seconds{{{MINE}}})",
    ),
    stat(
        "Failed calls",
        "Calls that failed by a fault of ours or of what is below us, a second. Look at which "
        "call and status it is, then at the log of that service.",
        "reqps",
        or_zero(rate(f"grpc_server_handled_total{{{MINE}, {FAILED}}}"), UP),
        Limits(0.1, 1),
    ),
    stat(
        "Latest event loop",
        "The slowest hundredth of the latest process. Above 50 ms each call to it is late: see "
        "its CPU, and add processes.",
        "s",
        f"max({LAG})",
        Limits(0.05, 0.25),
    ),
    stat(
        "Most series of a process",
        "Series that one process has; we keep it below 2,000. Above, a label takes too many "
        "values: a fault of ours.",
        "none",
        f"max(scrape_samples_scraped{{{MINE}}})",
        Limits(1500, 2000),
    ),
)

_UP = (
    Panel(
        "Processes that are up",
        "By service. A step down that does not come back is a process that does not start: read "
        "its log.",
        "none",
        (Query(f"sum by (job) ({UP})", "{{job}}"),),
        to=Link("fangcheng-tables", "Who plays the tables"),
    ),
    Panel(
        "Versions by service",
        "Which versions run. Two lines of one service for longer than a deployment takes: it is "
        "stuck half way.",
        "none",
        (
            Query(
                f"count by (service, version) (fangcheng_build_info{{{MINE}}})",
                "{{service}} {{version}}",
            ),
        ),
    ),
    Panel(
        "Age of processes",
        "Time since the start of each. A saw of small teeth is a process that is restarted again "
        "and again.",
        "s",
        _each(f"time() - process_start_time_seconds{{{MINE}}}"),
    ),
)

_USE = (
    Panel(
        "CPU",
        "Cores that each process uses. An event loop has one: near 1 a table, wallet or "
        "matchmaking process is full, add one; evaluators use as many as they have threads.",
        "none",
        _each(f"rate(process_cpu_seconds_total{{{MINE}}}[$__rate_interval])"),
        to=Link("fangcheng-evaluation", "CPU by process"),
    ),
    Panel(
        "Memory",
        "Resident memory of each process. A line that only grows for hours is a leak: keep a "
        "process of it for us and restart the others one by one.",
        "bytes",
        _each(f"process_resident_memory_bytes{{{MINE}}}"),
    ),
    Panel(
        "Open files",
        "Share of the files and connections that a process may have open. Near 100 % it takes no "
        "new connections: raise the limit (ulimit -n) or add processes.",
        "percentunit",
        _each(f"process_open_fds{{{MINE}}} / process_max_fds{{{MINE}}}"),
        limits=Limits(0.7, 0.9),
        highest=1,
    ),
    Panel(
        "How late the event loop is",
        "The slowest hundredth of each process. Above 50 ms every call to it is late: it works "
        "too much, or something blocks its loop; its log tells what it did.",
        "s",
        _each(LAG),
        promise=0.05,
    ),
    Panel(
        "Garbage collections",
        "Full collections of each process, a second; the loop stands still in each. Many beside "
        "growing memory: objects are kept that should go.",
        "cps",
        _each(f'rate(python_gc_collections_total{{{MINE}, generation="2"}}[$__rate_interval])'),
    ),
    Panel(
        "Time of a scrape",
        "How long a process takes to tell its metrics; we keep it below 100 ms. Above, it is "
        "overloaded or has too many series.",
        "s",
        _each(f"scrape_duration_seconds{{{MINE}}}"),
        promise=0.1,
    ),
)

_CALLS = (
    Panel(
        "Calls that ended",
        "By service, a second. One that falls to 0 alone is not reached by those that call it: "
        "see their logs.",
        "reqps",
        (Query(rate(CALLS, "job"), "{{job}}"),),
        stacked=True,
    ),
    Panel(
        "Failed calls by status",
        "Calls that failed by a fault of ours or of what is below us, a second. UNAVAILABLE and "
        "DEADLINE_EXCEEDED point below, INTERNAL and UNKNOWN at us: the log has the trace.",
        "reqps",
        (
            Query(
                or_zero(
                    rate(f"grpc_server_handled_total{{{MINE}, {FAILED}}}", "job, grpc_code"),
                    UP,
                    grpc_code="none",
                ),
                "{{job}} {{grpc_code}}",
            ),
        ),
    ),
    Panel(
        "Refused calls by status",
        "Calls that were the caller's fault or came too soon, a second. A jump after a deployment "
        "is a caller that no longer fits: PERMISSION_DENIED and UNAUTHENTICATED are its token.",
        "reqps",
        (
            Query(
                or_zero(
                    rate(
                        f'grpc_server_handled_total{{{MINE}, grpc_code!~"OK|CANCELLED", {OTHERS}}}',
                        "job, grpc_code",
                    ),
                    UP,
                    grpc_code="none",
                ),
                "{{job}} {{grpc_code}}",
            ),
        ),
    ),
    Panel(
        "Most frequent calls",
        "The ten calls that end most often, a second. One that grows alone shows who asks more "
        "than he should.",
        "reqps",
        (Query(f"topk(10, {rate(CALLS, 'grpc_service, grpc_method')})", "{{grpc_method}}"),),
    ),
    Panel(
        "Slowest calls",
        "The slowest hundredth of each unary call, the ten slowest. One alone has a fault of its "
        "own; all together are the event loop or the database.",
        "s",
        (
            Query(
                f"topk(10, {SLOWEST})",
                "{{job}} {{grpc_method}}",
            ),
        ),
    ),
    Panel(
        "Calls and streams that are open",
        "Calls that began and have not ended. Streams live long; unary calls that pile up wait "
        "for something: a database, an evaluator, or the event loop.",
        "none",
        (
            Query(
                f"sum by (job, grpc_type) (grpc_server_started_total{{{MINE}}})"
                f" - sum by (job, grpc_type) ({CALLS})",
                "{{job}} {{grpc_type}}",
            ),
        ),
    ),
)

BOARD = Board(
    uid="fangcheng-runtime",
    title="Runtime",
    tells="Every process: is it up, in which version, what it uses, what it answers.",
    variables=(
        Variable("job", "Service", "fangcheng_build_info", "job"),
        Variable("instance", "Process", 'fangcheng_build_info{job=~"$job"}', "instance"),
    ),
    rows=(
        Row("Now", _TILES),
        Row("Processes and versions", _UP),
        Row("What they use", _USE),
        Row("What they answer", _CALLS),
    ),
)
