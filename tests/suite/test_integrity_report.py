"""`fangcheng integrity`: facts of records, a stream that is gone on with, and what is told."""

from __future__ import annotations

import csv
import io
import itertools
import json
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from typer.testing import CliRunner, Result

from fangcheng.table.v1 import records_pb2
from fangcheng_kit.tokens import mint_token
from fangcheng_rules.rulesets import BUILT_IN
from fangcheng_suite.access import Elsewhere
from fangcheng_suite.commands import app
from fangcheng_suite.errors import SuiteError
from fangcheng_suite.gathered import Gathered
from fangcheng_suite.gathering import facts_of, gather
from fangcheng_suite.integrity import findings
from fangcheng_suite.integrity.facts import HandFacts
from fangcheng_suite.integrity.rehearsal import rates, season
from tests.table.hands import played_record
from tests.table.world import DEV_KEY, PLAYERS, play_all, request, world

RECORDS = [(rules.id, seed) for rules in BUILT_IN for seed in range(6)]

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.setenv("FANGCHENG_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("NO_COLOR", "1")
    runner = CliRunner()
    return lambda *words: runner.invoke(app, ["integrity", *(str(word) for word in words)])


def told(record: records_pb2.HandRecord) -> HandFacts:
    facts = facts_of(record)
    assert facts is not None
    return facts


# Facts of a record.


@pytest.mark.parametrize(("rules_id", "seed"), RECORDS)
def test_the_facts_of_a_record_are_what_its_end_shows(rules_id: str, seed: int) -> None:
    record = played_record(rules_id, seed)
    facts = told(record)
    ended = next(event.hand_ended for event in record.events if event.HasField("hand_ended"))
    # Melds still name whose discard they were laid down with when the hand is over.
    assert set(facts.claims) == {
        (meld.from_seat, seat)
        for seat, hand in enumerate(ended.hand.seats)
        for meld in hand.melds
        if meld.HasField("from_seat")
    }
    win = ended.hand.win
    by_another = win.by in ("discard", "rob_kong")
    assert facts.deal_ins == tuple((win.from_seat, seat) for seat in win.winners if by_another)
    net = [0, 0, 0, 0]
    for one, other, units in facts.paid:
        assert units > 0
        net[one] -= units
        net[other] += units
    house = [
        t for t in ended.score.transfers if not (t.HasField("from_seat") and t.HasField("to_seat"))
    ]
    for transfer in house:
        if transfer.HasField("from_seat"):
            net[transfer.from_seat] -= transfer.amount
        else:
            net[transfer.to_seat] += transfer.amount
    assert net == list(ended.net)
    assert facts.players == tuple(record.player_ids)
    assert facts.dealer == ended.hand.dealer
    assert facts.variant.startswith(f"{rules_id} {record.rules.revision} ")


def test_some_of_these_records_have_what_is_looked_for() -> None:
    facts = [told(played_record(*one)) for one in RECORDS]
    assert any(one.deal_ins for one in facts)
    assert any(one.claims for one in facts)
    assert any(one.paid for one in facts)


def test_a_seat_that_the_table_began_to_play_for_is_told() -> None:
    record = records_pb2.HandRecord()
    record.CopyFrom(played_record("baishan_kele", 4))
    for on in (True, False):
        event = record.events.add()
        event.trustee_changed.seat, event.trustee_changed.trustee = 2, on
    assert told(record).away == (2,)


def test_a_dissolved_hand_tells_nothing() -> None:
    record = records_pb2.HandRecord()
    record.CopyFrom(played_record("baishan_kele", 4))
    for event in record.events:
        if event.HasField("hand_ended"):
            event.hand_ended.hand.dissolved.reason = "the club closed"
    assert facts_of(record) is None


def test_a_record_without_end_or_players_tells_nothing() -> None:
    assert facts_of(records_pb2.HandRecord()) is None
    record = records_pb2.HandRecord()
    record.CopyFrom(played_record("baishan_kele", 4))
    record.player_ids[1] = record.player_ids[0]
    assert facts_of(record) is None


# Kept hands.


def some_facts(count: int) -> list[HandFacts]:
    facts, _ = season(
        random.Random(4), tables=count, hands=1, players=8, pairs=0, tables_each=0, times=1
    )
    return facts


def test_what_is_kept_comes_back_as_it_was(tmp_path: Path) -> None:
    facts = some_facts(30)
    with Gathered.in_file(tmp_path / "state" / "kept.db") as gathered:
        assert (gathered.cursor, gathered.last, gathered.mute) == ("", "", 0)
        gathered.add(facts[:20], 1, "20", "t 20")
        gathered.add(facts[15:], 2, "30", "t 30")
    with Gathered.in_file(tmp_path / "state" / "kept.db") as gathered:
        assert gathered.hands() == sorted(facts, key=lambda hand: hand.table_id)
        assert (gathered.cursor, gathered.last, gathered.mute) == ("30", "t 30", 3)
    assert (tmp_path / "state" / "kept.db").stat().st_mode & 0o077 == 0


def test_hands_and_cursor_are_kept_together_or_not_at_all(tmp_path: Path) -> None:
    def breaking() -> Any:
        yield from some_facts(3)
        raise RuntimeError("the connection broke")

    with Gathered.in_file(tmp_path / "kept.db") as gathered:
        with pytest.raises(RuntimeError):
            gathered.add(breaking(), 0, "3", "t 3")
        assert gathered.hands() == []
        assert gathered.cursor == ""


def test_a_file_of_another_version_or_kind_is_refused(tmp_path: Path) -> None:
    newer = tmp_path / "newer.db"
    db = sqlite3.connect(newer)
    db.execute("PRAGMA user_version = 99")
    db.close()
    other = tmp_path / "other.db"
    other.write_text("no database at all, but long enough to be mistaken for one" * 10)
    for path in (newer, other):
        with pytest.raises(SuiteError) as caught, Gathered.in_file(path):
            pass
        assert "deleted" in caught.value.hint


async def test_each_finished_hand_of_a_running_service_is_gathered_once(tmp_path: Path) -> None:
    async with world(tmp_path) as service:
        access = Elsewhere(service.address, mint_token(DEV_KEY, "operator"))

        async def play(key: str) -> str:
            made = await service.stub("operator").CreateTable(request(key, hands=2))
            await play_all(service, made.table.table_id)
            return str(made.table.table_id)

        with Gathered.in_file(tmp_path / "kept.db") as gathered:
            assert await gather(access, gathered) == 0
            tables = [await play("r1")]
            assert await gather(access, gathered) == 2
            assert await gather(access, gathered) == 0
            tables += [await play("r2"), await play("r3")]
        with Gathered.in_file(tmp_path / "kept.db") as gathered:
            assert await gather(access, gathered) == 4
            hands = gathered.hands()
        assert {(hand.table_id, hand.hand_number) for hand in hands} == {
            (table, number) for table in tables for number in (1, 2)
        }
        assert all(hand.players == PLAYERS and hand.ended_ms > 0 for hand in hands)
        for hand in hands:
            got = await service.records("operator").GetHandRecord(
                records_pb2.GetHandRecordRequest(
                    table_id=hand.table_id, hand_number=hand.hand_number
                )
            )
            assert facts_of(got.record, hand.ended_ms) == hand


async def test_a_service_that_refuses_or_is_not_there_is_told(tmp_path: Path) -> None:
    async with world(tmp_path) as service:
        with Gathered.in_file(tmp_path / "kept.db") as gathered:
            player = Elsewhere(service.address, mint_token(DEV_KEY, "player:ann"))
            gathered.add([], 0, "no cursor of ours", "t 1")
            made = await service.stub("operator").CreateTable(request())
            await play_all(service, made.table.table_id)
            with pytest.raises(SuiteError, match="reading finished hands"):
                await gather(player, gathered)
            with pytest.raises(SuiteError, match="INVALID_CURSOR"):
                await gather(Elsewhere(service.address, mint_token(DEV_KEY, "operator")), gathered)


# The report.


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of two clubs; in one of them zhu deals in to lan in every other hand."""
    folder = tmp_path_factory.mktemp("records")
    template = next(
        record
        for one in RECORDS
        if (record := played_record(*one)) and told(record).deal_ins and not told(record).away
    )
    chance = random.Random(12)
    cells = list(itertools.permutations(range(4), 2))
    seated = [("ming", "lan", "ju", "zhu"), ("a", "b", "c", "d")]
    for name, players in zip(("t1", "t2"), seated, strict=True):
        with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for number in range(1, 101):
                record = records_pb2.HandRecord()
                record.CopyFrom(template)
                record.table_id, record.hand_number = name, number
                record.player_ids[:] = players
                one, other = (3, 1) if name == "t1" and number % 2 else chance.choice(cells)
                # The rest of the play would be the same in all of them.
                kept = [
                    event
                    for event in record.events
                    if event.WhichOneof("kind") in ("hand_started", "hand_ended")
                ]
                for event in kept:
                    if event.HasField("hand_ended"):
                        event.hand_ended.hand.win.from_seat = one
                        event.hand_ended.hand.win.winners[:] = [other]
                        event.hand_ended.score.ClearField("transfers")
                        event.time.FromSeconds(1_767_225_600 + 60 * number)
                    if event.HasField("hand_started"):
                        event.hand_started.dealer = number % 4
                del record.events[:]
                record.events.extend(kept)
                file.write(json_format.MessageToJson(record, indent=None) + "\n")
    return folder


def test_the_report_names_the_pair_and_what_to_do(run: Run, folder: Path) -> None:
    ended = run("report", "--records", folder)
    assert ended.exit_code == 0, ended.output
    assert "200 hands at 2 tables between 8 players" in ended.output
    assert "12 pairs have met, 12 of them in 24 hands or more" in ended.output
    lines = [line for line in ended.output.splitlines() if "beyond chance" in line]
    assert len(lines) == 1
    assert lines[0].startswith("zhu deals in to lan")
    assert "look at the hands" in ended.output
    assert "proves nothing" in ended.output
    for word in ("cheat", "guilty", "fraud", "collu"):
        assert word not in ended.output.lower()


def test_hands_that_come_twice_count_once(run: Run, folder: Path) -> None:
    twice = run("report", "--records", folder, "--records", folder / "t1.jsonl")
    assert twice.output == run("report", "--records", folder).output


def test_an_honest_club_has_nothing_to_tell(run: Run, folder: Path) -> None:
    ended = run("report", "--records", folder / "t2.jsonl")
    assert ended.exit_code == 0, ended.output
    assert "Nothing is beyond chance." in ended.output
    shown = run("report", "--records", folder / "t2.jsonl", "--all")
    assert shown.output.count(" deals in to ") == 12


def test_json_csv_and_table_tell_the_same(run: Run, folder: Path) -> None:
    as_json = json.loads(run("report", "--records", folder, "--json", "--all").stdout)
    rows = list(
        csv.DictReader(io.StringIO(run("report", "--records", folder, "--csv", "--all").stdout))
    )
    asked = [finding for pair in as_json["pairs"] for finding in pair["findings"]]
    assert len(asked) == len(rows) == as_json["questions"]
    for finding, row in zip(asked, rows, strict=True):
        assert (finding["signal"], finding["from"], finding["to"]) == (
            row["signal"],
            row["from"],
            row["to"],
        )
        assert float(row["adjusted"]) == finding["adjusted"]
        assert (row["beyond_chance"] == "true") is finding["beyond_chance"]
    assert [pair["players"] for pair in as_json["pairs"] if pair["beyond_chance"]] == [
        ["lan", "zhu"]
    ]
    only = json.loads(run("report", "--records", folder, "--json").stdout)
    assert [pair["players"] for pair in only["pairs"]] == [["lan", "zhu"]]


def test_a_case_leads_to_the_hands(run: Run, folder: Path) -> None:
    ended = run("case", "lan", "--records", folder, "--hands", "5")
    assert ended.exit_code == 0, ended.output
    assert "lan: 100 hands at 1 tables, 3 partners often" in ended.output
    replays = [line for line in ended.output.splitlines() if "fangcheng replay" in line]
    assert len(replays) == 5
    assert replays[0].split()[:4] == ["fangcheng", "replay", "t1", "99"]
    assert all(line.endswith("zhu deals in to lan") for line in replays)
    assert "2026-01-01 01:39" in replays[0]
    assert " more (--hands)" in ended.output
    case = json.loads(run("case", "lan", "--records", folder, "--json", "--hands", 500).stdout)
    hands = case["to_look_at"]["zhu"]
    assert {(hand["table_id"], hand["hand_number"] % 2) for hand in hands} >= {("t1", 1)}
    (finding,) = [
        finding
        for pair in case["pairs"]
        for finding in pair["findings"]
        if finding["beyond_chance"]
    ]
    assert finding["observed"] == len(hands)


def test_a_case_with_somebody_inconspicuous_shows_their_hands_all_the_same(
    run: Run, folder: Path
) -> None:
    ended = run("case", "a", "--with", "b", "--records", folder)
    assert ended.exit_code == 0, ended.output
    assert "Hands with b" in ended.output
    assert "fangcheng replay t2" in ended.output
    strangers = run("case", "a", "--with", "lan", "--records", folder)
    assert "Fewer than 24 hands with lan" in strangers.output


def test_a_player_whom_nobody_knows_is_an_error(run: Run, folder: Path) -> None:
    ended = run("case", "nobody", "--records", folder)
    assert ended.exit_code == 1
    assert "nobody has played none of these hands" in ended.output


def test_hands_are_chosen_by_time_and_rule_set(run: Run, folder: Path) -> None:
    first = run("report", "--records", folder, "--until", "2026-01-01T00:11:00", "--json")
    assert json.loads(first.stdout)["hands"] == 20
    later = run("report", "--records", folder, "--since", "2026-01-01T00:11:00", "--json")
    assert json.loads(later.stdout)["hands"] == 180
    assert (
        json.loads(run("report", "--records", folder, "--rules", "no", "--json").stdout)["hands"]
        == 0
    )


def test_an_id_that_looks_like_markup_is_shown_as_it_is(
    run: Run, folder: Path, tmp_path: Path
) -> None:
    text = (folder / "t1.jsonl").read_text("utf-8").replace('"zhu"', '"[red]zhu[/]"')
    (tmp_path / "t1.jsonl").write_text(text, "utf-8")
    ended = run("report", "--records", tmp_path)
    assert "[red]zhu[/] deals in to lan" in ended.output
    case = run("case", "[red]zhu[/]", "--records", tmp_path)
    assert "[red]zhu[/]: 100 hands" in case.output


def test_metrics_count_and_name_nobody(run: Run, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "integrity.prom"
    ended = run("report", "--records", folder, "--metrics", file)
    assert ended.exit_code == 0, ended.output
    text = file.read_text("utf-8")
    assert "fangcheng_integrity_hands 200.0" in text
    assert 'fangcheng_integrity_pairs{state="beyond_chance"} 1.0' in text
    assert 'fangcheng_integrity_findings{signal="deal_in"} 1.0' in text
    assert 'fangcheng_integrity_findings{signal="soft"} 0.0' in text
    for name in ("lan", "zhu", "ming", "t1"):
        assert f'"{name}"' not in text
    failed = run("report", "--records", folder, "--metrics", tmp_path / "no" / "integrity.prom")
    assert failed.exit_code == 1
    assert "cannot write" in failed.output


def test_what_cannot_be_read_is_told(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.jsonl").write_text("{}\nnonsense\n")
    for words, said in (
        (["--records", tmp_path / "empty"], "there is no record in"),
        (["--records", tmp_path / "bad.jsonl"], "is no record of a hand"),
        (["--records", tmp_path / "none.json"], "cannot read"),
        (["--target", "127.0.0.1:1"], "--target needs --keep"),
        ([], "no suite runs"),
    ):
        ended = run("report", *words)
        assert ended.exit_code == 1, said
        assert said in ended.output
        assert "Traceback" not in ended.output
    assert run("report", "--json", "--csv").exit_code == 1


def test_the_command_asks_as_the_report_does() -> None:
    from typer.main import get_command

    group: Any = get_command(app)
    for name in ("report", "case"):
        options = {
            one.name: one.default for one in group.commands["integrity"].commands[name].params
        }
        assert options["level"] == findings.LEVEL
        assert options["min_hands"] == findings.LEAST_HANDS


# What it must find, and what it must not.


def test_planted_collusion_is_found_and_nobody_else_is_named() -> None:
    facts, planted = season(
        random.Random(3),
        tables=2_000,
        hands=8,
        players=400,
        pairs=2,
        tables_each=10,
        times=8.0,
        groups=10,
    )
    found = rates(findings.report(facts), planted)
    assert (found.planted, found.found, found.false_alarms) == (2, 2, 0)
    assert found.honest > 1_000


def test_where_nobody_helps_anybody_nobody_is_named() -> None:
    for seed in range(3):
        facts, _ = season(
            random.Random(seed),
            tables=600,
            hands=8,
            players=60,
            pairs=0,
            tables_each=0,
            times=1.0,
            groups=4,
        )
        assert findings.report(facts).beyond == ()
