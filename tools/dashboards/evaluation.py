"""Evaluation & scaling: how much is asked, how full evaluators are, where their time goes."""

from __future__ import annotations

from .board import Board, Choice, Limits, Link, Panel, Query, Row, Variable, stat
from .promql import EVALUATION, or_zero, percentile, rate, share_of

MINE = 'instance=~"$evaluator"'
OF = f'{MINE}, rule_set=~"$rule_set"'
HANDS = f"fangcheng_evaluation_hands_total{{{OF}}}"
FULL = (
    f"fangcheng_evaluation_waiting_hands{{{MINE}}}"
    f" / fangcheng_evaluation_waiting_hands_limit{{{MINE}}}"
)
BUSY = f"fangcheng_evaluation_busy_threads{{{MINE}}}"
THREADS = f"fangcheng_evaluation_threads{{{MINE}}}"
CPU = f'rate(process_cpu_seconds_total{{{MINE}, job="evaluation"}}[$__rate_interval])'


def _slowest(histogram: str, label: str, match: str = MINE, share: float = 0.99) -> Query:
    """A percentile by a label."""
    return Query(
        percentile(share, f"{histogram}_bucket{{{match}}}", EVALUATION, **{label: "none"}),
        f"{{{{{label}}}}}",
    )


_TILES = (
    stat(
        "Hands a second",
        "Hands that were asked about. Compare with what is usual at this hour, and with what the "
        "processes can do (docs/performance.md).",
        "cps",
        rate(HANDS),
    ),
    stat(
        "Fullest queue",
        "Waiting hands of what a lane takes in. From 80 % on calls are soon refused: add "
        "evaluators.",
        "percentunit",
        f"max({FULL})",
        Limits(0.5, 0.8),
        to=Link("fangcheng-evaluation", "How full the queues are"),
    ),
    stat(
        "Busy threads",
        "Share of all threads that work. Near 100 % for minutes, there are too few processes: add "
        "evaluators before the queues fill.",
        "percentunit",
        f"sum({BUSY}) / sum({THREADS})",
        Limits(0.7, 0.9),
        to=Link("fangcheng-evaluation", "Threads"),
    ),
    stat(
        "Wait for a thread",
        "The slowest hundredth of chunks, over all lanes. Above 50 ms players' prompts come late: "
        "add evaluators.",
        "s",
        percentile(0.99, f"fangcheng_evaluation_queue_seconds_bucket{{{MINE}}}", EVALUATION),
        Limits(0.025, 0.05),
        to=Link("fangcheng-evaluation", "Time in the queue"),
    ),
    stat(
        "Refused calls",
        "Calls refused because too much waits, a second. Tables ask again and wait meanwhile; "
        "bulk callers have to slow down. Add evaluators.",
        "cps",
        rate(f"fangcheng_evaluation_refused_calls_total{{{MINE}}}"),
        Limits(0.1, 1),
        to=Link("fangcheng-evaluation", "Refused calls by lane"),
    ),
    stat(
        "Processes",
        "Evaluators that are scraped and answer. Fewer than you run: one is down or Prometheus "
        "does not know it.",
        "none",
        'count(up{job="evaluation"} == 1) or on() 0 * max(up{job="evaluation"})',
        to=Link("fangcheng-runtime", "Processes that are up"),
    ),
)

_ASKED = (
    Panel(
        "Hands by call",
        "What is asked, in hands a second. A call that grows alone shows who asks more: tables "
        "analyse and score, bulk calls come from studios.",
        "cps",
        (Query(rate(HANDS, "call"), "{{call}}"),),
        stacked=True,
    ),
    Panel(
        "Hands by rule set",
        "What is asked, by rule set. One that falls to 0 while its tables live is not answered: "
        "look at hands without an answer.",
        "cps",
        (Query(rate(HANDS, "rule_set"), "{{rule_set}}"),),
        stacked=True,
        to=Link("fangcheng-tables", "Tables by rule set"),
    ),
    Panel(
        "Hands without an answer",
        "Hands that could not be read or belong to no rule set, a second, by call. They are the "
        "caller's fault; after a deployment, of a caller that is older or newer than we are.",
        "cps",
        (
            Query(
                rate(f'fangcheng_evaluation_hands_total{{{OF}, answered="no"}}', "call"),
                "{{call}}",
            ),
        ),
    ),
)

_SCALING = (
    Panel(
        "How full the queues are",
        "Waiting hands of what each lane takes in, the fullest process of each. Above 80 % add "
        "evaluators; a deployment in Kubernetes scales on it.",
        "percentunit",
        (Query(f"max by (lane) ({FULL})", "{{lane}}"),),
        limits=Limits(0.5, 0.8),
        highest=1,
    ),
    Panel(
        "Threads",
        "Threads that work, and those that there are. The two lines together for minutes: add "
        "evaluators.",
        "none",
        (Query(f"sum({BUSY})", "busy"), Query(f"sum({THREADS})", "all")),
    ),
    Panel(
        "CPU by process",
        "Cores that each evaluator uses. One at the number of its threads while others idle gets "
        "more than its share: see that callers balance (round_robin) and that Envoy knows all.",
        "none",
        (Query(f"sum by (instance) ({CPU})", "{{instance}}"),),
        chooses=Choice("fangcheng-runtime", "instance", "instance"),
    ),
    Panel(
        "Hands by process",
        "How hands are shared out, a second. A new process that gets none is not found by its "
        "callers: check the addresses that they are given.",
        "cps",
        (Query(rate(HANDS, "instance"), "{{instance}}"),),
        stacked=True,
    ),
    Panel(
        "Hands for a core's second",
        "Hands for each second of CPU. What you plan by: the hands that you expect divided by it "
        "are the cores that you need. A fall after a deployment is a slower version.",
        "none",
        (
            Query(
                or_zero(
                    f"{rate(f'fangcheng_evaluation_hands_total{{{MINE}}}')} / sum({CPU}) >= 0",
                    EVALUATION,
                ),
                "hands",
            ),
        ),
    ),
    Panel(
        "Refused calls by lane",
        "Calls refused because too much waits, a second. On the lane of tables, players wait: add "
        "evaluators now. On the bulk lane, callers have to slow down.",
        "cps",
        (Query(rate(f"fangcheng_evaluation_refused_calls_total{{{MINE}}}", "lane"), "{{lane}}"),),
    ),
)

_TIME = (
    Panel(
        "Time in the queue",
        "How long a chunk of hands waits for a thread, slowest hundredth of each lane. Above 50 "
        "ms players' prompts come late: add evaluators.",
        "s",
        (_slowest("fangcheng_evaluation_queue_seconds", "lane"),),
        promise=0.05,
        to=Link("fangcheng-tables", "Questions to evaluators"),
    ),
    Panel(
        "Time of the work",
        "How long a thread works on a chunk, slowest hundredth of each lane. It grows with the "
        "size of chunks, or when there are more threads than cores.",
        "s",
        (_slowest("fangcheng_evaluation_work_seconds", "lane"),),
    ),
    Panel(
        "Time in kernels",
        "Time inside kernels for a chunk, slowest hundredth of each rule set. Seconds at the "
        "start of a process mean that its cache was cold: keep FANGCHENG_CACHE_DIR.",
        "s",
        (_slowest("fangcheng_evaluation_kernel_seconds", "rule_set", OF),),
    ),
    Panel(
        "Hands of a chunk",
        "How many hands a thread takes at once, half of all chunks are below. Near 1 there is "
        "little load; near the limit there is much, and it is handled well.",
        "none",
        (_slowest("fangcheng_evaluation_chunk_hands", "lane", share=0.5),),
    ),
    Panel(
        "Share of time in kernels",
        "Of the threads' working time. The rest is payments and conversion; a fall after a "
        "deployment says that those became dearer.",
        "percentunit",
        (
            Query(
                share_of(
                    rate(f"fangcheng_evaluation_kernel_seconds_sum{{{MINE}}}"),
                    rate(f"fangcheng_evaluation_work_seconds_sum{{{MINE}}}"),
                    EVALUATION,
                ),
                "in kernels",
            ),
        ),
        highest=1,
    ),
    Panel(
        "Time of a call",
        "The slowest hundredth of each unary call. Tables' prompts wait for theirs: compare with "
        "what tables see, the rest is the network.",
        "s",
        (
            _slowest(
                "grpc_server_handling_seconds",
                "grpc_method",
                f'{MINE}, job="evaluation", grpc_type="unary"',
            ),
        ),
        to=Link("fangcheng-tables", "Questions to evaluators"),
    ),
)

BOARD = Board(
    uid="fangcheng-evaluation",
    title="Evaluation & scaling",
    tells="How much is asked of the evaluators, how full they are, and where their time goes: "
    "when to add some.",
    variables=(
        Variable(
            "evaluator", "Evaluator", 'fangcheng_build_info{service="evaluation"}', "instance"
        ),
        Variable("rule_set", "Rule set", "fangcheng_evaluation_hands_total", "rule_set"),
    ),
    rows=(
        Row("Now", _TILES),
        Row("What is asked", _ASKED),
        Row("When to add evaluators", _SCALING),
        Row("Where the time goes", _TIME),
    ),
)
