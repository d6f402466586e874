"""Live tables: what is played, how players fare, the journal, and who owns the tables."""

from __future__ import annotations

from .board import Board, Choice, Limits, Link, Panel, Query, Row, Variable, stat
from .promql import TABLE, percentile, percentiles, rate, share_of

MINE = 'instance=~"$table"'
OF = f'{MINE}, rule_set=~"$rule_set"'
LIVE = f'fangcheng_tables{{{OF}, phase!="closed"}}'


def _by(metric: str, label: str, match: str = MINE) -> tuple[Query, ...]:
    """A gauge summed up by a label."""
    query = f"sum by ({label}) ({metric}{{{match}}})"
    return (Query(query, f"{{{{{label}}}}}"),)


def _rate_by(metric: str, label: str, match: str = MINE) -> tuple[Query, ...]:
    """A counter's growth by a label."""
    query = rate(f"{metric}{{{match}}}", label)
    return (Query(query, f"{{{{{label}}}}}"),)


def _rate(metric: str, legend: str) -> Query:
    return Query(rate(f"{metric}{{{MINE}}}"), legend)


_TILES = (
    stat(
        "Live tables",
        "Tables that are not closed. Compare with what is usual at this hour; a sudden fall means "
        "that no new ones open: look at matchmaking.",
        "none",
        f"sum({LIVE})",
        to=Link("fangcheng-matchmaking"),
    ),
    stat(
        "Seats connected",
        "Streams of seats. Far below four for each table, players have lost their connection: "
        "look at what is in front of the service, Envoy first.",
        "none",
        f'sum(fangcheng_table_streams{{{MINE}, kind="seat"}})',
        to=Link("fangcheng-tables", "Streams"),
    ),
    stat(
        "Hands a minute",
        "Hands that ended, however they did. At 0 with tables live, play hangs: look at the "
        "questions that wait for an evaluator and at the journal.",
        "cpm",
        f"60 * {rate(f'fangcheng_table_hands_total{{{OF}}}')}",
    ),
    stat(
        "Acts shown within 50 ms",
        "Share of acts that were stored and shown 50 ms after they came. Below 99 % our promise "
        "breaks: the commits of the journal or the event loop take the time.",
        "percentunit",
        share_of(
            rate(f'fangcheng_table_act_seconds_bucket{{{MINE}, le="0.05"}}'),
            rate(f"fangcheng_table_act_seconds_count{{{MINE}}}"),
            TABLE,
            of_nothing=1,
        ),
        Limits(0.99, 0.95),
        to=Link("fangcheng-tables", "From an act to its events"),
    ),
    stat(
        "Tables without a process",
        "Tables that are not done and that no process plays. For seconds that is a take-over; "
        "where it stays above 0, no process has their rule set: start one that does.",
        "none",
        f"max(fangcheng_table_unowned{{{MINE}}})",
        Limits(1, 1),
        to=Link("fangcheng-tables", "Who plays the tables"),
    ),
    stat(
        "Questions open",
        "Questions that no evaluator has answered yet; no prompt is open meanwhile. Where they "
        "stay, evaluators are away or full: look at theirs.",
        "none",
        f"sum(fangcheng_table_evaluator_questions{{{MINE}}})",
        to=Link("fangcheng-evaluation"),
    ),
)

_PLAY = (
    Panel(
        "Tables by phase",
        "Where tables are. Many before the deal wait for players who do not come; many between "
        "hands wait for players to say that they are ready.",
        "none",
        _by("fangcheng_tables", "phase", OF),
        stacked=True,
    ),
    Panel(
        "Tables by rule set",
        "What is played. One rule set that falls alone has a fault of its own: its pools, its "
        "newest revision, or what evaluators answer for it.",
        "none",
        _by("fangcheng_tables", "rule_set", f'{OF}, phase!="closed"'),
        stacked=True,
    ),
    Panel(
        "Tables by mode",
        "How people came to play: in ranked or casual pools, in rooms, at practice. A mode that "
        "falls alone points to its pools or to the lobby of rooms.",
        "none",
        _by("fangcheng_tables", "mode", f'{OF}, phase!="closed"'),
        stacked=True,
        to=Link("fangcheng-matchmaking"),
    ),
    Panel(
        "Hands by ending",
        "How hands end, a second. A win or a draw is the rule; more escapes or dissolved hands "
        "than usual mean that players leave: look at time-outs and connections.",
        "cps",
        _rate_by("fangcheng_table_hands_total", "ending", OF),
        stacked=True,
    ),
    Panel(
        "Why tables close",
        "Reasons a second. Tables that are deserted were never played, though matched: players do "
        "not find their way from the queue to the table.",
        "cps",
        _rate_by("fangcheng_table_closed_total", "reason"),
        stacked=True,
        to=Link("fangcheng-matchmaking", "What was left behind"),
    ),
    Panel(
        "Questions to evaluators",
        "From a question to its answer, repeats included, slowest hundredth, by kind. Each delays "
        "a prompt: above 50 ms look at the evaluators' queues.",
        "s",
        (
            Query(
                percentile(
                    0.99,
                    f"fangcheng_table_evaluator_wait_seconds_bucket{{{MINE}}}",
                    TABLE,
                    kind="none",
                ),
                "{{kind}}",
            ),
        ),
        promise=0.05,
        to=Link("fangcheng-evaluation", "Wait for a thread"),
    ),
)

_WORTH = (
    Panel(
        "Fan of a win",
        "Half of all wins are below the line of their rule set. A jump after a deployment means "
        "that scoring has changed: compare a hand with its record (fangcheng verify).",
        "none",
        (
            Query(
                percentile(0.5, f"fangcheng_table_win_fan_bucket{{{OF}}}", TABLE, rule_set="none"),
                "{{rule_set}}",
            ),
        ),
        width=12,
    ),
    Panel(
        "Points that a loser pays",
        "The largest hundredth of what one loser pays in a hand. A jump after a deployment means "
        "that payments have changed: compare a hand with its record (fangcheng verify).",
        "none",
        (
            Query(
                percentile(
                    0.99,
                    f"fangcheng_table_payment_points_bucket{{{OF}}}",
                    TABLE,
                    rule_set="none",
                ),
                "{{rule_set}}",
            ),
        ),
        width=12,
        to=Link("fangcheng-wallet"),
    ),
)

_PLAYERS = (
    Panel(
        "From an act to its events",
        "From a player's act to the moment its events are stored and shown; the line is what we "
        "promise. Above it, compare with the commits of the journal and with the event loop.",
        "s",
        percentiles(f"fangcheng_table_act_seconds_bucket{{{MINE}}}", TABLE),
        promise=0.05,
        to=Link("fangcheng-runtime", "How late the event loop is"),
    ),
    Panel(
        "Acts by how long they took",
        "All acts of a minute by their time. A second band of slow ones beside the usual one is "
        "one process or one disk: choose the processes one by one above.",
        "s",
        (
            Query(
                f"60 * {rate(f'fangcheng_table_act_seconds_bucket{{{MINE}}}', 'le')}",
                "{{le}}",
            ),
        ),
        kind="heatmap",
    ),
    Panel(
        "Streams",
        "Open streams, of seats and of spectators. A fall on all processes at once is the network "
        "or what is in front of us; on one, a restart.",
        "none",
        _by("fangcheng_table_streams", "kind"),
    ),
    Panel(
        "Time-outs and reconnects",
        "A second. Prompts that nobody answers beside many reconnects are connections that break; "
        "without them, players who went away.",
        "cps",
        (
            _rate("fangcheng_table_prompts_timed_out_total", "prompts timed out"),
            _rate("fangcheng_table_reconnects_total", "reconnects"),
        ),
    ),
    Panel(
        "Seats played by the table",
        "Seats whose players do not answer, at this moment. Where it grows with time-outs of "
        "evaluators or journal, players wait for us and not we for them.",
        "none",
        (
            Query(
                f"sum(fangcheng_table_trustee_seats{{{MINE}}})",
                "seats played by the table",
            ),
        ),
    ),
    Panel(
        "Why the table plays a seat",
        "Seats that the table began to play for, or gave back, a second. More that were "
        "disconnected than came back is an outage on the way to players.",
        "cps",
        _rate_by("fangcheng_table_trustees_total", "why"),
    ),
)

_JOURNAL = (
    Panel(
        "One commit of the journal",
        "Time of a commit; every act waits for one. Above 25 ms the promise of 50 ms is in "
        "danger: look at the disk or at the PostgreSQL server.",
        "s",
        percentiles(f"fangcheng_table_journal_commit_seconds_bucket{{{MINE}}}", TABLE),
        promise=0.025,
    ),
    Panel(
        "Appends that share a commit",
        "How many tables' events go into one commit. It grows with the load, and commits take "
        "longer then: at several dozen, spread the tables over more processes.",
        "none",
        percentiles(f"fangcheng_table_journal_commit_appends_bucket{{{MINE}}}", TABLE),
    ),
    Panel(
        "Faults",
        "A second; all should be 0. Appends that failed point to the database; questions asked "
        "again to evaluators; tables that were rebuilt to a fault of ours: the log has its trace.",
        "cps",
        (
            _rate("fangcheng_table_journal_failures_total", "appends failed"),
            _rate("fangcheng_table_evaluator_failures_total", "questions asked again"),
            _rate("fangcheng_table_failures_total", "tables rebuilt"),
        ),
    ),
)

_OWNERS = (
    Panel(
        "Who plays the tables",
        "Tables that no process plays, and changes of owners a second. Changes belong to restarts "
        "(the marks); without one, processes are thought dead: look at their loops and the "
        "database.",
        "none",
        (
            Query(f"max(fangcheng_table_unowned{{{MINE}}})", "without a process"),
            _rate("fangcheng_table_taken_over_total", "taken over a second"),
            _rate("fangcheng_table_superseded_total", "let go of a second"),
        ),
    ),
    Panel(
        "Time that was lost",
        "Seconds of each second in which a process did not run; it counts against no player. "
        "Above 0 the host is overloaded or the process was paused.",
        "percentunit",
        (
            Query(
                f"sum by (instance) (rate(fangcheng_table_lost_seconds_total{{{MINE}}}"
                "[$__rate_interval]))",
                "{{instance}}",
            ),
        ),
        to=Link("fangcheng-runtime", "CPU"),
    ),
    Panel(
        "Tables by process",
        "How the tables are shared out. One process with far more than the others came up alone "
        "or was the newest version: new tables even it out.",
        "none",
        _by("fangcheng_tables", "instance", f'{OF}, phase!="closed"'),
        stacked=True,
        chooses=Choice("fangcheng-runtime", "instance", "instance"),
    ),
)

BOARD = Board(
    uid="fangcheng-tables",
    title="Live tables",
    tells="What is played, how players fare, the journal under it, and who plays the tables.",
    variables=(
        Variable("table", "Table process", 'fangcheng_build_info{service="table"}', "instance"),
        Variable("rule_set", "Rule set", "fangcheng_tables", "rule_set"),
    ),
    rows=(
        Row("Now", _TILES),
        Row("What is played", _PLAY),
        Row("What hands are worth", _WORTH),
        Row("Players", _PLAYERS),
        Row("Journal", _JOURNAL),
        Row("Processes and their tables", _OWNERS),
    ),
)
