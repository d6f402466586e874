"""The measured costs, each with where it comes from: `figures.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from importlib.resources import files

from .model import SERVICES, Costs


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure."""

    name: str
    """A field of `Costs`; of `process_bytes` with the service behind a dot."""
    value: float
    unit: str
    source: str
    """How it was measured."""
    result: tuple[str, ...] = ()
    """Where `benchmarks/results` has it: file, heading, line; none: it follows from others."""
    times: float = 1.0
    """The figure is so many times the one there."""


def figures() -> tuple[Figure, ...]:
    """All of them, in the order of the file."""
    text = files(__package__).joinpath("figures.toml").read_text("utf-8")
    return tuple(
        Figure(
            name=name,
            value=float(one["value"]),
            unit=one["unit"],
            source=one["source"],
            result=tuple(one.get("result", ())),
            times=float(one.get("times", 1)),
        )
        for name, one in tomllib.loads(text).items()
    )


def costs() -> Costs:
    """The figures as the model takes them."""
    known = {figure.name: figure.value for figure in figures()}
    process_bytes = {name: known.pop(f"process_bytes_{name}") for name in SERVICES}
    assert set(known) == {one.name for one in fields(Costs)} - {"process_bytes"}  # noqa: S101 # nosec B101 # of a file of ours
    return Costs(process_bytes=process_bytes, **known)
