"""Findings as a person reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.markup import escape

from .findings import Finding, Level

_STYLES: dict[Level, str] = {"ok": "green", "warn": "yellow", "fail": "bold red", "skip": "dim"}


def shown(finding: Finding) -> Iterator[str]:
    """A finding in lines of markup: what was seen, what it means, what to do."""
    style = _STYLES[finding.level]
    seen = escape(f"{finding.subject}: {finding.told}")
    yield f"[{style}]{finding.level:<4}[/{style}]  {seen}"
    if finding.means:
        yield f"      {escape(finding.means)}"
    if finding.cure:
        yield f"      [bold]To do:[/bold] {escape(finding.cure)}"


def summary(findings: list[Finding]) -> str:
    """How it stands in one line of markup."""
    count = Counter(one.level for one in findings)
    told = f"{count['ok']} ok, {count['warn']} to mend, {count['fail']} failed"
    if count["skip"]:
        told += f", {count['skip']} not looked at"
    if count["fail"]:
        return f"[bold red]{told}.[/bold red]"
    return f"[yellow]{told}.[/yellow]" if count["warn"] else f"[green]{told}.[/green]"
