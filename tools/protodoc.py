"""Render docs/api.md from the contracts, or check that it is fresh.

    python tools/protodoc.py [--check]

Everything on the page is taken from the .proto files: comments, who may call (the option
fangcheng.access.v1.access) and limits (the rules of buf.validate).
"""

from __future__ import annotations

import subprocess  # nosec B404 # for our own commands alone
import sys
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
    MethodOptions,
    ServiceDescriptorProto,
)
from google.protobuf.message import Message

from buf.validate import validate_pb2
from fangcheng.access.v1 import access_pb2

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "api.md"
INTRODUCTION = """\
# The calls

Generated from the `.proto` files by `make protos`; change it there. Each call tells who may make it
and which statuses it answers besides the general ones: INVALID_ARGUMENT where a limit below is
broken or a text contains NUL (every broken field is named), UNAUTHENTICATED without a valid token,
PERMISSION_DENIED for a caller who is not listed, UNAVAILABLE while a process starts or stops. Every
error carries a `google.rpc.ErrorInfo` with the reason in capitals and the domain `fangcheng`,
within the `google.rpc.Status` of the trailing metadata `grpc-status-details-bin`;
[errors](errors.md) tells of each reason what to do.

Who calls is told by the metadata `authorization: Bearer TOKEN`, where it is no certificate
([identities](operations/identities.md)). `fangcheng token SUBJECT` prints a token of the running
suite; the subject is `player:<id>`, `operator` or `service:<name>`. A gateway whose token has the
scope `act_as` names the player it acts for in the metadata `fangcheng-act-as`. A stream ends with
its token (UNAUTHENTICATED, TOKEN_EXPIRED): it is to be opened again with the next one.
`fangcheng up` serves matchmaking on port 7100, table on 7101, wallet on 7102, evaluation on 7110.
"""
Field = FieldDescriptorProto
SCALARS = {number: name[5:].lower() for name, number in Field.Type.items()}
REPEATABLE = {
    MethodOptions.NO_SIDE_EFFECTS: "Changes nothing; may be repeated.",
    MethodOptions.IDEMPOTENT: "May be repeated: the second time changes nothing more.",
}
# How a rule of buf.validate reads; one that is not here is shown by its own name.
RULES = {
    "min_len": "at least {} long",
    "max_len": "at most {} long",
    "len": "{} long",
    "min_items": "at least {} items",
    "max_items": "at most {} items",
    "min_pairs": "at least {} pairs",
    "max_pairs": "at most {} pairs",
    "unique": "no two alike",
    "gt": "above {}",
    "gte": "at least {}",
    "lt": "below {}",
    "lte": "at most {}",
    "const": "exactly {}",
    "in": "one of {}",
    "not_in": "none of {}",
    "defined_only": "a value listed",
    "required": "required",
    "pattern": "matches `{}`",
}
GROUPS = {"items": "each ", "keys": "keys ", "values": "values "}


def load() -> list[FileDescriptorProto]:
    """The descriptors of our contracts with their comments, by file name."""
    built = subprocess.run(  # noqa: S603 # nosec B603 # no words of others
        [str(Path(sys.executable).parent / "buf"), "build", "-o", "-"],
        cwd=ROOT,
        capture_output=True,
    )
    if built.returncode:
        raise SystemExit(built.stderr.decode())
    found = FileDescriptorSet.FromString(built.stdout).file
    return sorted((f for f in found if f.name.startswith("fangcheng/")), key=lambda f: f.name)


class Comments:
    """The comments of one file, by the path of an element in its descriptor."""

    def __init__(self, file: FileDescriptorProto) -> None:
        self.found: dict[tuple[int, ...], str] = {}
        for location in file.source_code_info.location:
            text = location.leading_comments or location.trailing_comments
            if text.strip():
                lines = (line.removeprefix(" ").rstrip() for line in text.strip().splitlines())
                self.found[tuple(location.path)] = "\n".join(lines)

    def of(self, *path: int) -> str:
        """The comment at ``path``; '' where there is none."""
        return self.found.get(path, "")


# An element is its full name, its descriptor, and its path in the file.
Element = tuple[str, Message, tuple[int, ...]]


def elements(file: FileDescriptorProto) -> Iterator[Element]:
    """Everything in ``file`` that must have a comment, in the order of the file."""
    for index, service in enumerate(file.service):
        name = f"{file.package}.{service.name}"
        yield name, service, (6, index)
        for number, method in enumerate(service.method):
            yield f"{name}.{method.name}", method, (6, index, 2, number)
    for index, message in enumerate(file.message_type):
        yield from message_elements(file.package, message, (4, index))
    for index, enum in enumerate(file.enum_type):
        yield from enum_elements(file.package, enum, (5, index))
    for index, extension in enumerate(file.extension):
        yield f"{file.package}.{extension.name}", extension, (7, index)


def message_elements(
    scope: str, message: DescriptorProto, path: tuple[int, ...]
) -> Iterator[Element]:
    """A message, its fields, and what is declared inside it."""
    name = f"{scope}.{message.name}"
    yield name, message, path
    for index, field in enumerate(message.field):
        yield f"{name}.{field.name}", field, (*path, 2, index)
    for index, inner in enumerate(message.nested_type):
        if not inner.options.map_entry:
            yield from message_elements(name, inner, (*path, 3, index))
    for index, enum in enumerate(message.enum_type):
        yield from enum_elements(name, enum, (*path, 4, index))


def enum_elements(
    scope: str, enum: EnumDescriptorProto, path: tuple[int, ...]
) -> Iterator[Element]:
    """An enum and its values."""
    yield f"{scope}.{enum.name}", enum, path
    for index, value in enumerate(enum.value):
        yield f"{scope}.{enum.name}.{value.name}", value, (*path, 2, index)


def uncommented(files: list[FileDescriptorProto]) -> list[str]:
    """Full names of all elements without a comment."""
    return [
        name
        for file in files
        for comments in [Comments(file)]
        for name, _, path in elements(file)
        if not comments.of(*path)
    ]


def render(files: list[FileDescriptorProto]) -> str:
    """The whole page: the services first, then what they speak with."""
    parts = [INTRODUCTION]
    for file in sorted(files, key=lambda f: (not f.service, f.name)):
        comments = Comments(file)
        parts.append(f"## {file.name}\n\n{comments.of(12)}\n")
        maps = {
            f".{name}.{inner.name}": inner
            for name, element, _ in elements(file)
            if isinstance(element, DescriptorProto)
            for inner in element.nested_type
            if inner.options.map_entry
        }
        for name, element, path in elements(file):
            comment = comments.of(*path)
            if isinstance(element, ServiceDescriptorProto):
                parts.append(f"### {name}\n\n{comment}\n")
            elif isinstance(element, MethodDescriptorProto):
                parts.append(call(name, element, comment))
            elif isinstance(element, DescriptorProto):
                parts.append(message_table(name, element, path, comments, maps))
            elif isinstance(element, EnumDescriptorProto):
                rows = [
                    f"| {value.number} | `{value.name}` | {cell(comments.of(*path, 2, index))} |"
                    for index, value in enumerate(element.value)
                ]
                table = "\n".join(["| number | value | meaning |", "| --- | --- | --- |", *rows])
                parts.append(f"#### {name}\n\n{comment}\n\n{table}\n")
    return "\n".join(parts)


def call(name: str, method: MethodDescriptorProto, comment: str) -> str:
    """One call: what goes in and out, who may make it, what it does."""
    access = method.options.Extensions[access_pb2.access]
    callers = []
    for role in access.roles:
        word = access_pb2.Role.Name(role).removeprefix("ROLE_").lower()
        if role == access_pb2.ROLE_SERVICE and access.services:
            word += f" ({', '.join(access.services)})"
        if role == access_pb2.ROLE_SERVICE and access.studio_only:
            word += " (of the studio's)"
        callers.append(word)
    scope = f"; with the scope `{access.scope}`" if access.scope else ""
    lines = [
        f"#### {name}",
        "",
        f"{'stream of ' if method.client_streaming else ''}{link(method.input_type)} →"
        f" {'stream of ' if method.server_streaming else ''}{link(method.output_type)}",
        "",
        comment,
        "",
        f"Callers: {', '.join(callers)}{scope}."
        f" {REPEATABLE.get(method.options.idempotency_level, '')}".rstrip(),
        "",
    ]
    return "\n".join(lines)


def message_table(
    name: str,
    message: DescriptorProto,
    path: tuple[int, ...],
    comments: Comments,
    maps: dict[str, DescriptorProto],
) -> str:
    """One message with a row for each field."""
    rows = []
    for index, field in enumerate(message.field):
        limits = "; ".join(rules(field.options.Extensions[validate_pb2.field]))
        kind = type_of(field, maps)
        if field.HasField("oneof_index") and not field.proto3_optional:
            kind += f"<br>one of `{message.oneof_decl[field.oneof_index].name}`"
        meaning = cell(comments.of(*path, 2, index))
        rows.append(f"| {field.number} | `{field.name}` | {kind} | {cell(limits)} | {meaning} |")
    head = ["| | field | type | limits | meaning |", "| --- | --- | --- | --- | --- |"]
    table = "\n".join([*head, *rows]) if rows else "No fields."
    return f"#### {name}\n\n{comments.of(*path)}\n\n{table}\n"


def type_of(field: FieldDescriptorProto, maps: dict[str, DescriptorProto]) -> str:
    """How the type of a field is written, linked where it is on this page."""
    if field.type_name in maps:
        key, value = maps[field.type_name].field
        return f"map of {type_of(key, maps)} to {type_of(value, maps)}"
    name = link(field.type_name) if field.type_name else SCALARS[field.type]
    if field.label == Field.LABEL_REPEATED:
        return f"repeated {name}"
    return f"optional {name}" if field.proto3_optional else name


def link(type_name: str) -> str:
    """A message or enum by its short name, linked when it is ours."""
    name = type_name.removeprefix(".")
    short = f"`{name.rpartition('.')[2]}`"
    if not name.startswith("fangcheng."):
        return f"`{name}`"
    return f"[{short}](#{name.replace('.', '').lower()})"


def rules(message: Message) -> Iterator[str]:
    """The limits that are set in a rules message, in words."""
    for descriptor, value in message.ListFields():
        if descriptor.name == "ignore":
            continue  # how a limit is checked, and none itself
        if descriptor.name in GROUPS:
            yield from (GROUPS[descriptor.name] + rule for rule in rules(value))
        elif isinstance(value, Message) and descriptor.name not in RULES:
            yield from rules(value)
        elif value is not False:
            many = not isinstance(value, str | bytes | Message) and hasattr(value, "__iter__")
            shown = ", ".join(map(str, value)) if many else str(value)
            yield RULES.get(descriptor.name, f"{descriptor.name} {{}}").format(shown)


def cell(text: str) -> str:
    """Text for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def main(check: bool) -> None:
    """Write the page, or with ``check`` fail where it is not what would be written."""
    files = load()
    if missing := uncommented(files):
        raise SystemExit("without a comment:\n  " + "\n  ".join(missing))
    page = render(files)
    if not check:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(page)
    elif not PAGE.exists() or PAGE.read_text() != page:
        raise SystemExit(f"{PAGE.relative_to(ROOT)} is not fresh: run `make protos`")


if __name__ == "__main__":
    main(check="--check" in sys.argv[1:])
