"""Render docs/security.md with who may make which call, or check that it is fresh.

    python tools/accessdoc.py [--check]

What is written by hand stands in `security.md` beside this file; who may call is read from the
options beside the calls, the very ones that the services enforce.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor

import fangcheng
from fangcheng.access.v1 import access_pb2

PAGE = Path(__file__).resolve().parent.parent / "docs" / "security.md"
WRITTEN = Path(__file__).with_name("security.md")
NOTE = "<!-- Generated from tools/security.md and the .proto files by `make docs`. -->\n\n"
YES, NO = "yes", ""


def services() -> Iterator[ServiceDescriptor]:
    """Every service of the contracts, by its name."""
    for folder in map(Path, fangcheng.__path__):
        for path in sorted(folder.glob("*/v1/*_pb2.py")):
            name = ".".join(path.relative_to(folder.parent).with_suffix("").parts)
            yield from importlib.import_module(name).DESCRIPTOR.services_by_name.values()


def access_of(method: MethodDescriptor) -> access_pb2.Access:
    """Who may make a call."""
    return method.GetOptions().Extensions[access_pb2.access]


def row(method: MethodDescriptor) -> tuple[str, ...]:
    """A call, and who may make it."""
    access = access_of(method)
    named = ""
    if access_pb2.ROLE_SERVICE in access.roles:
        any_ = "the studio's" if access.studio_only else "any"
        named = ", ".join(f"`{name}`" for name in access.services) or any_
    players = YES if access_pb2.ROLE_PLAYER in access.roles else NO
    if access.player_calls_per_minute:
        players += f", {access.player_calls_per_minute} a minute"
    return (
        f"`{method.name}`",
        players,
        YES if access_pb2.ROLE_OPERATOR in access.roles else NO,
        named,
        f"`{access.scope}`" if access.scope else "",
    )


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A table of Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def access() -> str:
    """A table for each service: its calls, and who may make them."""
    head = ("call", "players", "operators", "services", "needs the scope")
    parts = []
    for service in sorted(services(), key=lambda one: str(one.full_name)):
        name = service.full_name.removeprefix("fangcheng.")
        parts.append(f"**{name}**\n\n{table(head, [row(one) for one in service.methods])}")
    return "\n".join(parts)


def rights() -> str:
    """What each service may do that others may not."""
    may: dict[str, list[str]] = {}
    for service in services():
        for method in service.methods:
            for name in access_of(method).services:
                may.setdefault(name, []).append(f"`{service.name}.{method.name}`")
    rows = [(f"`service:{name}`", ", ".join(sorted(calls))) for name, calls in sorted(may.items())]
    return table(("identity", "calls that name it"), rows)


def rendered() -> str:
    """The page."""
    page = WRITTEN.read_text("utf-8")
    for name, part in {"access": access(), "rights": rights()}.items():
        page = page.replace(f"{{{{ {name} }}}}\n", part)
    return NOTE + page


def main(check: bool) -> None:
    """Write the page, or with ``check`` fail where it is not what would be written."""
    if not check:
        PAGE.write_text(rendered(), "utf-8")
    elif not PAGE.exists() or PAGE.read_text("utf-8") != rendered():
        raise SystemExit(f"{PAGE.relative_to(PAGE.parents[1])} is not fresh: run make docs")


if __name__ == "__main__":
    main("--check" in sys.argv[1:])
