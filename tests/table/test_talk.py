"""What seats say to each other: who hears it, how much of it there is, and what may be said."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from fangcheng.table.v1 import records_pb2, state_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng_client import attend, explain
from fangcheng_table.errors import InvalidText, TalkOff, TalksTooMuch, UnknownPhrase
from fangcheng_table.events import TalkRules
from fangcheng_table.feed import MOST_TALK, Feed
from fangcheng_table.talk import BURST, SECONDS_BETWEEN, Talk, checked

from .world import PLAYERS, Player, refused, request, until, until_attended


class Clock:
    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


def talk(rules: TalkRules | None = None, now: Clock | None = None) -> Talk:
    return Talk(rules or TalkRules(), {"hello", "thanks"}, now or Clock())


def said(phrase: str = "", text: str = "") -> wire.SayRequest:
    if phrase:
        return wire.SayRequest(table_id="t1", phrase=phrase)
    return wire.SayRequest(table_id="t1", text=text)


# What may be said.


def test_a_phrase_is_said_by_its_id_and_a_text_as_it_is():
    it = talk()
    heard = it.say(2, said("hello"))
    assert (heard.seat, heard.phrase, heard.HasField("text")) == (2, "hello", False)
    assert it.say(0, said(text="  你好, Mei! ")).text == "你好, Mei!"


def test_a_phrase_that_there_is_not_is_refused_with_those_that_there_are():
    with pytest.raises(UnknownPhrase, match=r"hello, thanks") as caught:
        talk().say(0, said("insult"))
    assert caught.value.field == "phrase"


@pytest.mark.parametrize(
    "text",
    ["abc", "你好　朋友", "Grüße", "👨\u200d👩\u200d👧", "1+1=2?", "x" * 60],
)
def test_letters_figures_signs_and_spaces_may_be_said(text):
    assert checked(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "x" * 61,
        "   ",
        "\u3000",
        "two\nlines",
        "a\tb",
        "bell\x07",
        "turned \u202e around",
        "hidden\u200b space",
        "\ue000 private",
        "\ud83d alone",
    ],
)
def test_what_hides_or_turns_other_characters_may_not_be_said(text):
    with pytest.raises(InvalidText) as caught:
        checked(text)
    assert caught.value.field == "text"


def test_a_character_in_two_parts_counts_as_the_one_it_is():
    assert checked("e\u0301" * 60) == "\u00e9" * 60


def test_the_rules_of_a_table_turn_talk_off_or_leave_phrases():
    with pytest.raises(TalkOff):
        talk(TalkRules(off=True)).say(0, said("hello"))
    it = talk(TalkRules(phrases_only=True))
    assert it.say(0, said("hello"))
    with pytest.raises(TalkOff):
        it.say(0, said(text="hello"))


# How much.


def test_a_seat_may_say_some_things_at_once_and_then_one_in_a_while():
    clock = Clock()
    it = talk(now=clock)
    for _ in range(3):
        for _ in range(BURST):
            it.say(1, said("hello"))
        for _ in range(3):  # a refusal costs nothing
            with pytest.raises(TalksTooMuch) as caught:
                it.say(1, said("hello"))
        assert caught.value.retry_after_seconds == pytest.approx(SECONDS_BETWEEN)
        it.say(2, said("hello"))  # others may still
        clock.seconds += SECONDS_BETWEEN
        it.say(1, said("hello"))
        with pytest.raises(TalksTooMuch):
            it.say(1, said("hello"))
        clock.seconds += 1_000


def test_what_may_not_be_said_does_not_count():
    it = talk()
    for _ in range(3 * BURST):
        with pytest.raises(UnknownPhrase):
            it.say(0, said("insult"))
    assert it.say(0, said("hello"))


# Who hears it.


class Ear:
    """A stream that keeps what it hears."""

    def __init__(self, call: Any) -> None:
        self.heard: list[tuple[int, str]] = []
        self.numbers: list[int] = []
        self.task = asyncio.create_task(self._listen(call))

    async def _listen(self, call: Any) -> None:
        async for message in call:
            if message.HasField("talk"):
                self.heard.append((message.talk.seat, message.talk.phrase or message.talk.text))
            elif message.HasField("event"):
                self.numbers.append(message.event.number)


async def opened(service: Any, **more: Any) -> str:
    made = await service.stub("operator").CreateTable(request(hands=9, **more))
    table_id: str = made.table.table_id
    return table_id


def ear(service: Any, table_id: str, name: str, **more: Any) -> Ear:
    if name == "eve":
        return Ear(service.player(name).Watch(wire.WatchRequest(table_id=table_id)))
    return Ear(service.player(name).Attend(wire.AttendRequest(table_id=table_id, **more)))


async def say(service: Any, table_id: str, name: str, **what: str) -> None:
    await service.player(name).Say(wire.SayRequest(table_id=table_id, **what))


@pytest.mark.parametrize("spectators", [False, True])
async def test_seats_hear_each_other_and_spectators_where_the_table_lets_them(service, spectators):
    table_id = await opened(service, talk=state_pb2.TalkRules(spectators=spectators))
    ears = {name: ear(service, table_id, name) for name in (*PLAYERS, "eve")}
    await until(lambda: all(one.numbers for one in ears.values()))
    await say(service, table_id, "bob", phrase="hello")
    await say(service, table_id, "ann", text="good luck")
    spoken = [(1, "hello"), (0, "good luck")]
    await until(lambda: all(ears[name].heard == spoken for name in PLAYERS))
    if spectators:
        await until(lambda: ears["eve"].heard == spoken)
    # The events' numbers know nothing of it.
    await until(lambda: all(len(one.numbers) >= 6 for one in ears.values()))
    for one in ears.values():
        assert one.numbers == list(range(1, len(one.numbers) + 1))
    assert ears["eve"].heard == (spoken if spectators else [])
    for one in ears.values():
        one.task.cancel()


async def test_a_seat_does_not_hear_whom_it_has_muted(service):
    table_id = await opened(service)
    ann = ear(service, table_id, "ann", muted=[1, 2])
    dan = ear(service, table_id, "dan")
    await until(lambda: bool(ann.numbers and dan.numbers))
    for name in ("bob", "cat", "dan"):
        await say(service, table_id, name, phrase="thanks")
    await until(lambda: len(dan.heard) == 3)
    await until(lambda: ann.heard == [(3, "thanks")])
    again = ear(service, table_id, "ann")  # hears all of them again
    await until(lambda: bool(again.numbers))
    await say(service, table_id, "bob", phrase="sorry")
    await until(lambda: again.heard == [(1, "sorry")])
    for one in (ann, dan, again):
        one.task.cancel()
    await asyncio.gather(ann.task, return_exceptions=True)


async def test_a_gateway_hears_for_each_of_its_seats(service):
    table_id = await opened(service)
    heard: list[tuple[str, int, str]] = []

    async def requests() -> Any:
        for name in ("ann", "bob"):
            muted = [2] if name == "bob" else []
            add = wire.AddSeat(player_id=name, table_id=table_id, muted=muted)
            yield wire.AttendManyRequest(add=add)
        await asyncio.Event().wait()

    added: set[str] = set()

    async def listen() -> None:
        async for message in service.stub("operator", "act_as").AttendMany(requests()):
            added.update(entry.player_id for entry in message.events.events)
            if message.HasField("talk"):
                told = message.talk
                heard.append((told.player_id, told.talk.seat, told.talk.phrase))

    task = asyncio.create_task(listen())
    await until(lambda: added == {"ann", "bob"})
    await say(service, table_id, "cat", phrase="hello")
    await say(service, table_id, "dan", phrase="hello")
    await until(lambda: len(heard) == 3)
    assert sorted(heard) == [("ann", 2, "hello"), ("ann", 3, "hello"), ("bob", 3, "hello")]
    task.cancel()


async def test_the_client_tells_what_it_hears(service):
    table_id = await opened(service)
    heard: list[wire.Talk] = []

    async def listen() -> None:
        channel = service.channel("player:ann")
        async for _ in attend(channel, table_id, muted=[3], on_talk=heard.append):
            pass

    task = asyncio.create_task(listen())
    await until_attended(service, table_id, "bob")
    await until(lambda: service.value("fangcheng_table_streams", kind="seat") == 2)
    await say(service, table_id, "dan", phrase="hello")
    await say(service, table_id, "bob", phrase="hello")
    await until(lambda: [one.seat for one in heard] == [1])
    task.cancel()


def test_a_reader_that_does_not_listen_hears_the_newest_only():
    feed = Feed()
    reader = feed.open(0, 0, lambda: None)
    for number in range(MOST_TALK + 5):
        feed.say(wire.Talk(seat=1, text=str(number)), spectators=False)
    heard = []
    while (one := reader.heard()) is not None:
        heard.append(one.text)
    assert heard == [str(number) for number in range(5, MOST_TALK + 5)]


async def test_talk_is_refused_to_who_has_no_seat_and_where_the_table_says_so(service):
    table_id = await opened(service, talk=state_pb2.TalkRules(off=True))

    def saying(name: str, table: str, **what: str) -> Any:
        return service.player(name).Say(wire.SayRequest(table_id=table, **what))

    assert (await refused(saying("ann", table_id, phrase="hello")))[:2] == (
        "FAILED_PRECONDITION",
        "TALK_OFF",
    )
    assert (await refused(saying("eve", table_id, phrase="hello")))[1] == "NOT_SEATED"
    assert (await refused(saying("ann", "nowhere", phrase="hello")))[1] == "UNKNOWN_TABLE"
    assert (await refused(saying("ann", table_id)))[:2] == ("INVALID_ARGUMENT", "INVALID_REQUEST")
    got = await service.stub("operator").GetTable(wire.GetTableRequest(table_id=table_id))
    assert got.table.talk.off


async def test_too_much_talk_is_refused_with_the_time_to_wait(service):
    table_id = await opened(service)
    message = wire.SayRequest(table_id=table_id, phrase="hello")
    # At once, and more than are let through within a minute, which no machine needs for them.
    count = BURST + round(60 / SECONDS_BETWEEN)
    answers = await asyncio.gather(
        *(service.player("ann").Say(message) for _ in range(count)), return_exceptions=True
    )
    refusals = [answer for answer in answers if isinstance(answer, grpc.aio.AioRpcError)]
    assert 0 < len(refusals) <= count - BURST
    for refusal in refusals:
        assert refusal.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert explain(refusal).reason == "TALKS_TOO_MUCH"


async def test_talk_is_in_no_record(service):
    made = await service.stub("operator").CreateTable(request())
    table_id = made.table.table_id

    class Talker(Player):
        async def play(self, table_id: str) -> None:
            await say(service, table_id, self._name, text=f"I am {self._name}!")
            await super().play(table_id)

    async with asyncio.TaskGroup() as group:
        for name in PLAYERS:
            group.create_task(Talker(service, name).play(table_id))
    got = await service.records("operator").GetHandRecord(
        records_pb2.GetHandRecordRequest(table_id=table_id, hand_number=1)
    )
    assert b"I am" not in got.record.SerializeToString()
