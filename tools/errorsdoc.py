"""Render docs/errors.md from the catalogue of reasons, or check that it is fresh.

    python tools/errorsdoc.py [--check]

What is written by hand stands in `errors.md` beside this file; the reasons are those of the
client's `reasons.json`, which is also what programs read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from fangcheng_client.reasons import Reason, Retry, catalogue

PAGE = Path(__file__).resolve().parent.parent / "docs" / "errors.md"
WRITTEN = Path(__file__).with_name("errors.md")
NOTE = (
    "<!-- Generated from tools/errors.md and shared/client/fangcheng_client/reasons.json by "
    "`make docs`. -->\n\n"
)
HEADINGS = {
    "every": "Every service",
    "matchmaking": "Matchmaking",
    "table": "Tables",
    "wallet": "Wallet",
    "evaluation": "Evaluation",
    "client": "Without a reason of a service's",
    "console": "Console",
    "rules": "The package fangcheng_rules",
}
LEADS = {
    "client": "What gRPC itself, a proxy or a studio's own service answers has the name of its "
    "status for a reason; some is named by the client library.",
    "console": 'The console refuses in JSON, `{"error": {"reason", "message", "field"}}`, with a '
    "status of HTTP; what a service behind it has refused goes through with its own reason.",
    "rules": "For who uses the rules as a library; no call answers these.",
}
REPEAT = {Retry.NEVER: "no", Retry.AFTER: "later", Retry.SAME: "yes"}
NAMES = {"every": "every service", "client": "gRPC, client", "rules": "fangcheng_rules"}


def statuses(reason: Reason) -> str:
    """What a reason comes with."""
    told = [code.name for code in reason.statuses] + [f"HTTP {number}" for number in reason.http]
    return ", ".join(told) or "no status"


def entry(reason: Reason) -> str:
    """A reason as the page has it."""
    who = ", ".join(NAMES.get(one, one) for one in reason.services)
    english, chinese = reason.text("en"), reason.text("zh")
    return (
        f"### {reason.id}\n\n"
        f"{statuses(reason)} · {who} · repeat: {REPEAT[reason.retry]}\n\n"
        f"**{english.message}** {english.cause}\n\n"
        f"*What to do:* {english.cure}\n\n"
        f"> **{chinese.message}** {chinese.cause}\n>\n> *处理：* {chinese.cure}\n"
    )


def index(reasons: Iterable[Reason]) -> str:
    """A table of the reasons below."""
    rows = [("reason", "status", "repeat"), ("---", "---", "---")]
    rows += [
        (f"[{one.id}](#{one.id.lower()})", statuses(one), REPEAT[one.retry]) for one in reasons
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def parts() -> Iterator[str]:
    """The sections of the page; a reason of several services stands with the first of them."""
    yield NOTE + WRITTEN.read_text("utf-8")
    for service, heading in HEADINGS.items():
        reasons = [one for one in catalogue().values() if home(one) == service]
        lead = f"{LEADS[service]}\n\n" if service in LEADS else ""
        yield f"## {heading}\n\n{lead}{index(reasons)}"
        yield from map(entry, reasons)


def home(reason: Reason) -> str:
    """Under which heading a reason stands."""
    return next(one for one in HEADINGS if one in reason.services)


def rendered() -> str:
    """The page."""
    return "\n".join(parts())


def main(check: bool) -> None:
    """Write the page, or with ``check`` fail where it is not what would be written."""
    if not check:
        PAGE.write_text(rendered(), "utf-8")
    elif not PAGE.exists() or PAGE.read_text("utf-8") != rendered():
        raise SystemExit(f"{PAGE.relative_to(PAGE.parents[1])} is not fresh: run make docs")


if __name__ == "__main__":
    main("--check" in sys.argv[1:])
