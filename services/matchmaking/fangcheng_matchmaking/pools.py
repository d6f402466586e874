"""The pools, read from a YAML file and checked before the service starts.

The limits are those of `CreateTable`, so that a pool that is taken here is never refused there for
its form. Whether its rule set and options exist is checked against what the evaluators list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from fangcheng.rules.v1 import rules_pb2
from fangcheng_kit.settings import complaints

from .core import Away, OptionValue, Pool, Stake, Terms, Timing

MOST_AMOUNT = 2**53
_BARE = ConfigDict(extra="forbid", strict=True, frozen=True)

_Id = Annotated[str, Field(min_length=1, max_length=64)]
_Milliseconds = Annotated[int, Field(ge=0, le=600_000)]


class BadPools(Exception):
    """The file does not make usable pools; the message names each key at fault."""


class _Rules(BaseModel):
    model_config = _BARE

    id: _Id
    revision: int = Field(0, ge=0, le=2**32 - 1)
    options: dict[_Id, bool | int | Annotated[str, Field(max_length=64)]] = Field(
        default_factory=dict, max_length=32
    )


class _Stake(BaseModel):
    model_config = _BARE

    currency: _Id
    book: str = Field("", max_length=64)
    per_unit: int = Field(ge=1, le=1_000_000_000)
    buy_in: int = Field(0, ge=0, le=MOST_AMOUNT)
    minimum: int = Field(0, ge=0, le=MOST_AMOUNT)


class _Timing(BaseModel):
    model_config = _BARE

    turn_ms: _Milliseconds | None = None
    claim_ms: _Milliseconds | None = None
    before_deal_ms: _Milliseconds | None = None
    claim_window_ms: int | None = Field(default=None, ge=0, le=60_000)
    between_hands_ms: _Milliseconds | None = None
    away_grace_ms: int | None = Field(default=None, ge=0, le=86_400_000)
    reserve_ms: _Milliseconds | None = None
    ready_ms: _Milliseconds | None = None
    vote_ms: _Milliseconds | None = None
    vacancy_ms: int | None = Field(default=None, ge=0, le=86_400_000)
    away: Away | None = None


class _Pool(BaseModel):
    model_config = _BARE

    id: _Id
    name: str = Field(min_length=1, max_length=128)
    rules: _Rules
    stakes: list[_Stake] = Field(default_factory=list, max_length=4)
    hands: int = Field(0, ge=0, le=1_000)
    rounds: int = Field(0, ge=0, le=100)
    starting_chips: int = Field(0, ge=0, le=1_000_000_000)
    timing: _Timing = _Timing()
    least_client_version: int = Field(0, ge=0, le=2**32 - 1)
    fill_with_bots_after_ms: int = Field(0, ge=0, le=3_600_000)

    @model_validator(mode="after")
    def _chips_or_stakes(self) -> Self:
        if self.starting_chips and self.stakes:
            raise ValueError("starting_chips are counted only where nothing is staked")
        return self

    @field_validator("stakes")
    @classmethod
    def _each_currency_once(cls, stakes: list[_Stake]) -> list[_Stake]:
        kinds = [(stake.currency, stake.book) for stake in stakes]
        for kind in kinds:
            if kinds.count(kind) > 1:
                raise ValueError(f"the currency {' '.join(kind).strip()} is staked twice")
        return stakes

    def as_pool(self) -> Pool:
        options: dict[str, OptionValue] = dict(self.rules.options)
        return Pool(
            pool_id=self.id,
            name=self.name,
            terms=Terms(
                rule_set=self.rules.id,
                revision=self.rules.revision,
                options=options,
                stakes=tuple(Stake(**stake.model_dump()) for stake in self.stakes),
                hands=self.hands,
                rounds=self.rounds,
                starting_chips=self.starting_chips,
                timing=Timing(**self.timing.model_dump()),
            ),
            least_client_version=self.least_client_version,
            fill_with_bots_after_ms=self.fill_with_bots_after_ms,
        )


class _File(BaseModel):
    model_config = _BARE

    pools: list[_Pool] = Field(min_length=1, max_length=256)

    @field_validator("pools")
    @classmethod
    def _each_id_once(cls, pools: list[_Pool]) -> list[_Pool]:
        ids = [pool.id for pool in pools]
        for pool_id in ids:
            if ids.count(pool_id) > 1:
                raise ValueError(f"the id {pool_id} is given twice")
        return pools


def load_pools(path: Path | None = None) -> dict[str, Pool]:
    """The pools of a file by id, in its order; without a path those that come with the service.

    Raises BadPools.
    """
    try:
        if path is None:
            text = files(__package__).joinpath("pools.yaml").read_text("utf-8")
        else:
            text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadPools(f"{path}: cannot be read: {error}") from None
    return parse_pools(text, str(path or "pools.yaml"))


def parse_pools(text: str, name: str = "pools") -> dict[str, Pool]:
    """The pools of a YAML text by id, in its order; `name` stands in the message of BadPools."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadPools(f"{name}: not YAML: {error}") from None
    try:
        parsed = _File.model_validate(document)
    except ValidationError as error:
        raise BadPools("\n".join(complaints(error, name))) from None
    return {pool.id: pool.as_pool() for pool in parsed.pools}


def unplayable(pools: Iterable[Pool], rule_sets: Sequence[rules_pb2.RuleSet]) -> list[str]:
    """What evaluators that list these rule sets cannot play, each with its pool.

    The newest revision of a rule set comes first in the list.
    """
    return [
        f"pool {pool.pool_id}: {complaint}"
        for pool in pools
        for complaint in _complaints(pool.terms, rule_sets)
    ]


def _complaints(terms: Terms, rule_sets: Sequence[rules_pb2.RuleSet]) -> Iterator[str]:
    revisions = [known for known in rule_sets if known.id == terms.rule_set]
    if not revisions:
        yield f"no evaluator plays {terms.rule_set}"
        return
    played = [known for known in revisions if terms.revision in (0, known.revision)]
    if not played:
        has = ", ".join(str(known.revision) for known in revisions)
        yield f"{terms.rule_set} is played in revision {has}, not {terms.revision}"
        return
    options = {option.id: option for option in played[0].options}
    for name, value in terms.options.items():
        if name not in options:
            yield f"{terms.rule_set} has no option {name}"
        elif not _takes(options[name], value):
            yield f"the option {name} of {terms.rule_set} cannot be {value!r}"


def _takes(option: rules_pb2.OptionSpec, value: OptionValue) -> bool:
    if isinstance(value, bool):
        return option.type == rules_pb2.OPTION_TYPE_BOOL
    if isinstance(value, int):
        fits = option.minimum <= value <= option.maximum
        return option.type == rules_pb2.OPTION_TYPE_INTEGER and fits
    return option.type == rules_pb2.OPTION_TYPE_CHOICE and value in option.choices
