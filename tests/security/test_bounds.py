"""Nothing that a caller sends is without a bound: texts, bytes, lists, maps and pages.

A message as a whole has one too (FANGCHENG_MAX_MESSAGE_BYTES), and so have calls and streams.
"""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from buf.validate import validate_pb2
from fangcheng_evaluation.settings import EvaluationSettings
from fangcheng_matchmaking.settings import MatchmakingSettings
from fangcheng_table.settings import TableSettings
from fangcheng_wallet.settings import WalletSettings
from tests.security import contracts

LONGEST_TEXT = 4_096
MOST_ITEMS = 1_000
LARGEST_PAGE = 1_000

_BY_HAND = "counted in bulk.py: to check what is declared costs more than to read the message"
EXCEPTIONS = {
    f"fangcheng.evaluation.v1.{request}.{field}": why
    for request in ("EvaluateHandsRequest", "StreamHandsRequest")
    for field, why in {
        "rule_set": "looked up in a table, and kept nowhere",
        "questions": _BY_HAND,
        "hands": _BY_HAND,
    }.items()
}
"""What has no declared bound, and what bounds it instead."""

_TEXTS = {FieldDescriptor.TYPE_STRING: "string", FieldDescriptor.TYPE_BYTES: "bytes"}
_SIZES = ("page_size", "limit", "count", "neighbours")


def unbounded(message: Descriptor) -> Iterator[str]:
    """The fields of a message that may be as large as they like, each with what is missing."""
    for field in message.fields:
        rules = field.GetOptions().Extensions[validate_pb2.field]
        nested = field.message_type
        where = f"{message.full_name}.{field.name}"
        if nested is not None and nested.GetOptions().map_entry:
            if not 1 <= rules.map.max_pairs <= MOST_ITEMS:
                yield f"{where}: map.max_pairs"
            for part, own in (("key", rules.map.keys), ("value", rules.map.values)):
                if not _is_bounded_text(nested.fields_by_name[part], own):
                    yield f"{where}: map.{part}s"
        elif field.is_repeated:
            if not 1 <= rules.repeated.max_items <= MOST_ITEMS:
                yield f"{where}: repeated.max_items"
            if not _is_bounded_text(field, rules.repeated.items):
                yield f"{where}: repeated.items"
        elif not _is_bounded_text(field, rules):
            yield f"{where}: max_len"
        elif field.name in _SIZES and not _is_bounded_number(rules):
            yield f"{where}: lte"


def _is_bounded_text(field: FieldDescriptor, rules: Message) -> bool:
    """Whether a field is no text, or one of a length that is bounded."""
    kind = _TEXTS.get(field.type)
    if kind is None:
        return True
    text = getattr(rules, kind)
    longest = max(text.max_len, text.len, getattr(text, "max_bytes", 0))
    return 1 <= longest <= LONGEST_TEXT or len(getattr(text, "in")) > 0 or _ends(text)


def _ends(text: Message) -> bool:
    """Whether a pattern tells how long the whole text is."""
    pattern = getattr(text, "pattern", "")
    return pattern.startswith("^") and pattern.endswith("$") and not {*pattern} & {*"*+,."}


def _is_bounded_number(rules: Message) -> bool:
    return any(0 < getattr(rules, kind).lte <= LARGEST_PAGE for kind in ("uint32", "int32"))


def requests() -> dict[str, Descriptor]:
    """Every message that can be in a request, of those that are ours."""
    found = contracts.within(*(call.input_type for call in contracts.calls()))
    return {
        name: message
        for name, message in found.items()
        if name.startswith("fangcheng.") and not message.GetOptions().map_entry
    }


def test_every_field_of_every_request_has_a_bound() -> None:
    found = [field for message in requests().values() for field in unbounded(message)]
    assert [field for field in found if field.partition(":")[0] not in EXCEPTIONS] == []
    gone = EXCEPTIONS.keys() - {field.partition(":")[0] for field in found}
    assert gone == set(), "bounded by now: take them off the list"


def test_what_is_in_requests_from_elsewhere_has_nothing_to_fill() -> None:
    """Timestamps and durations: numbers only."""
    foreign = contracts.within(*(call.input_type for call in contracts.calls())).values()
    for message in foreign:
        if not message.full_name.startswith("fangcheng."):
            assert all(
                field.type not in _TEXTS and not field.is_repeated and field.message_type is None
                for field in message.fields
            ), message.full_name


def test_players_ask_of_evaluation_their_own_hand_alone_and_that_seldom() -> None:
    """So do they for rooms, whose codes could be walked."""
    theirs = [call for call in contracts.calls() if contracts.reaches_players(call)]
    asked = [call.name for call in theirs if call.full_name.startswith("fangcheng.evaluation.")]
    assert asked == ["Analyze"]
    seldom = {call.name: contracts.need(call).player_calls_per_minute for call in theirs}
    assert {name: most for name, most in seldom.items() if most} == {
        "Analyze": 60,
        "OpenRoom": 30,
        "EnterRoom": 30,
    }


def test_what_has_no_bound_is_found() -> None:
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="unbounded.proto",
        package="fangcheng.unbounded",
        syntax="proto3",
        dependency=["buf/validate/validate.proto"],
    )
    message = file.message_type.add(name="Request")
    entry = message.nested_type.add(name="LabelsEntry")
    entry.options.map_entry = True
    for number, name in enumerate(("key", "value"), 1):
        entry.field.add(
            name=name, number=number, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL
        )
    single, many = field.LABEL_OPTIONAL, field.LABEL_REPEATED
    message.field.add(name="text", number=1, type=field.TYPE_STRING, label=single)
    message.field.add(name="data", number=2, type=field.TYPE_BYTES, label=single)
    message.field.add(name="texts", number=3, type=field.TYPE_STRING, label=many)
    message.field.add(name="numbers", number=4, type=field.TYPE_INT32, label=many)
    message.field.add(
        name="labels",
        number=5,
        type=field.TYPE_MESSAGE,
        type_name=".fangcheng.unbounded.Request.LabelsEntry",
        label=many,
    )
    message.field.add(name="page_size", number=6, type=field.TYPE_UINT32, label=single)
    long = message.field.add(name="long", number=7, type=field.TYPE_STRING, label=single)
    long.options.Extensions[validate_pb2.field].string.max_len = LONGEST_TEXT + 1
    short = message.field.add(name="short", number=8, type=field.TYPE_STRING, label=single)
    short.options.Extensions[validate_pb2.field].string.max_len = 8
    pool = descriptor_pool.DescriptorPool()
    for known in ("google/protobuf/descriptor.proto", "google/protobuf/duration.proto"):
        pool.AddSerializedFile(descriptor_pool.Default().FindFileByName(known).serialized_pb)
    for known in ("google/protobuf/field_mask.proto", "google/protobuf/timestamp.proto"):
        pool.AddSerializedFile(descriptor_pool.Default().FindFileByName(known).serialized_pb)
    pool.AddSerializedFile(validate_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    found = unbounded(pool.FindMessageTypeByName("fangcheng.unbounded.Request"))
    assert [one.removeprefix("fangcheng.unbounded.Request.") for one in found] == [
        "text: max_len",
        "data: max_len",
        "texts: repeated.max_items",
        "texts: repeated.items",
        "numbers: repeated.max_items",
        "labels: map.max_pairs",
        "labels: map.keys",
        "labels: map.values",
        "page_size: lte",
        "long: max_len",
    ]


def largest(message: Descriptor, inside: frozenset[str] = frozenset()) -> int:
    """The most bytes that a message has whose fields keep to their bounds."""
    if message.full_name in inside:
        return 0
    inside |= {message.full_name}
    size = 0
    for field in message.fields:
        rules = field.GetOptions().Extensions[validate_pb2.field]
        nested = field.message_type
        if nested is not None and nested.GetOptions().map_entry:
            parts = ((nested.fields_by_name["key"], rules.map.keys),)
            parts += ((nested.fields_by_name["value"], rules.map.values),)
            size += rules.map.max_pairs * (_HEAD + sum(_most(*part, inside) for part in parts))
        elif field.is_repeated:
            size += rules.repeated.max_items * _most(field, rules.repeated.items, inside)
        else:
            size += _most(field, rules, inside)
    return size


_HEAD = 6
"""Bytes of a field's number and length, at most."""
_NUMBER = 12
"""Of a number, with its field's."""
_SIGN = 4
"""Of a character in UTF-8."""


def _most(field: FieldDescriptor, rules: Message, inside: frozenset[str]) -> int:
    if field.message_type is not None:
        return _HEAD + largest(field.message_type, inside)
    if field.type not in _TEXTS:
        return _NUMBER
    text = getattr(rules, _TEXTS[field.type])
    longest = max(text.max_len, text.len, *(len(one) for one in getattr(text, "in")), 0)
    return _HEAD + _SIGN * (longest or len(getattr(text, "pattern", "")))


def test_what_is_within_its_bounds_is_no_message_too_large() -> None:
    """Batches aside: they may be cut into smaller ones."""
    limits = {
        "matchmaking": MatchmakingSettings,
        "table": TableSettings,
        "wallet": WalletSettings,
        "evaluation": EvaluationSettings,
    }
    checked = 0
    for call in contracts.calls():
        service = call.full_name.split(".")[1]
        if call.name in ("SettleBatch", "ScoreBatch", "AnalyzeBatch"):
            continue
        if call.input_type.full_name in {name.rpartition(".")[0] for name in EXCEPTIONS}:
            continue
        limit = limits[service].model_fields["max_message_bytes"].default
        assert largest(call.input_type) <= limit, call.full_name
        checked += 1
    assert checked > 60
