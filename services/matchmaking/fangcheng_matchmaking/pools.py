"""The pools, read from a YAML file and checked before the service starts.

The limits are those of `CreateTable`, so that a pool that is taken here is never refused there for
its form. Whether its rule set and options exist is checked against what the evaluators list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from fangcheng.rules.v1 import rules_pb2
from fangcheng_kit.settings import complaints

from .core import (
    SEATS,
    Away,
    Fee,
    Mode,
    Offer,
    OptionValue,
    Pool,
    Rating,
    Spread,
    Stake,
    Terms,
    Timing,
)
from .rooms import Template

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
    entry_minimum: int = Field(0, ge=0, le=MOST_AMOUNT)
    minimum: int = Field(0, ge=0, le=MOST_AMOUNT)
    loss_cap_per_hand: int = Field(0, ge=0, le=MOST_AMOUNT)
    loss_cap_per_day: int = Field(0, ge=0, le=MOST_AMOUNT)


class _Fee(BaseModel):
    model_config = _BARE

    currency: _Id
    book: str = Field("", max_length=64)
    amount: int = Field(ge=1, le=MOST_AMOUNT)


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


class _Rating(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)  # lax: 50 is a number of points too

    by: Literal["points", "skill"] = "points"
    currency: str = Field("", max_length=64)
    book: str = Field("", max_length=64)
    spread: float = Field(ge=0, le=MOST_AMOUNT)
    widen_per_second: float = Field(0, ge=0, le=MOST_AMOUNT)
    widest: float | None = Field(default=None, ge=0, le=MOST_AMOUNT)

    @model_validator(mode="after")
    def _ends(self) -> _Rating:
        if self.by == "points" and not self.currency:
            raise ValueError("currency: by which the players are rated")
        if self.by == "skill" and (self.currency or self.book):
            raise ValueError("currency: skill is no balance; leave currency and book out")
        if self.widest is not None and self.widest < self.spread:
            raise ValueError("widest is less than spread; a spread only ever widens")
        return self


class _Played(BaseModel):
    """What is played at a table and for what, of a pool as of a private room."""

    model_config = _BARE

    rules: _Rules
    stakes: list[_Stake] = Field(default_factory=list, max_length=4)
    hold_only: bool = False
    hands: int = Field(0, ge=0, le=1_000)
    rounds: int = Field(0, ge=0, le=100)
    starting_chips: int = Field(0, ge=0, le=1_000_000_000)
    timing: _Timing = _Timing()

    @field_validator("stakes", "fees", check_fields=False)
    @classmethod
    def _each_currency_once(cls, amounts: list[_Stake] | list[_Fee]) -> list[_Stake] | list[_Fee]:
        kinds = [(amount.currency, amount.book) for amount in amounts]
        for kind in kinds:
            if kinds.count(kind) > 1:
                raise ValueError(f"the currency {' '.join(kind).strip()} is given twice")
        return amounts

    @model_validator(mode="after")
    def _counts_and_holds(self) -> Self:
        if self.starting_chips and self.stakes:
            raise ValueError("starting_chips are counted only where nothing is staked")
        if self.hold_only and not any(stake.buy_in for stake in self.stakes):
            raise ValueError("hold_only: nothing is held where no stake has a buy_in")
        return self

    def as_terms(self, fees: Iterable[Fee]) -> Terms:
        options: dict[str, OptionValue] = dict(self.rules.options)
        return Terms(
            rule_set=self.rules.id,
            revision=self.rules.revision,
            options=options,
            stakes=tuple(Stake(**stake.model_dump()) for stake in self.stakes),
            fees=tuple(fees),
            hold_only=self.hold_only,
            hands=self.hands,
            rounds=self.rounds,
            starting_chips=self.starting_chips,
            timing=Timing(**self.timing.model_dump()),
        )


class _Terms(_Played):
    """What a revision of a pool may change."""

    mode: Literal["casual", "ranked", "anti_cheat", "practice"] = "casual"
    fees: list[_Fee] = Field(default_factory=list, max_length=4)
    least_client_version: int = Field(0, ge=0, le=2**32 - 1)
    most_party: int = Field(1, ge=1, le=SEATS)
    rating: _Rating | None = None
    rematch_after_ms: int = Field(10_000, ge=0, le=3_600_000)
    fill_with_bots_after_ms: int = Field(0, ge=0, le=3_600_000)
    backfill: bool = False
    bots_where_silver_is_staked: bool = False

    @model_validator(mode="after")
    def _fits_together(self) -> _Terms:
        if self.mode == "anti_cheat" and self.most_party > 1:
            raise ValueError("most_party: players of an anti_cheat pool come alone")
        if self.mode == "ranked" and self.rating is None:
            raise ValueError("rating: a ranked pool says what it rates by")
        if self.backfill and not self.timing.vacancy_ms:
            raise ValueError("backfill: without timing.vacancy_ms no seat waits for anybody")
        staked = [stake.currency for stake in self.stakes if stake.buy_in]
        if staked and self.fill_with_bots_after_ms and not self.bots_where_silver_is_staked:
            raise ValueError(
                f"fill_with_bots_after_ms: bots would win and lose {staked[0]}; where the house "
                "means to fund them, say bots_where_silver_is_staked: true"
            )
        return self


class _Newer(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    revision: int = Field(ge=1, le=2**32 - 1)
    percent: float = Field(0, ge=0, le=100)
    labels: dict[Annotated[str, Field(max_length=63)], str] = Field(
        default_factory=dict, max_length=8
    )
    changes: dict[str, Any] = Field(min_length=1)


class _Pool(_Terms):
    id: _Id
    name: str = Field(min_length=1, max_length=128)
    revision: int = Field(1, ge=1, le=2**32 - 1)
    newer: _Newer | None = None

    def as_offer(self, newer: _Pool | None) -> Offer:
        """The pool; `newer` is the newer revision spelled out."""
        if self.newer is None or newer is None:
            return Offer(pool=self.as_pool())
        return Offer(
            pool=self.as_pool(),
            newer=newer.as_pool(),
            percent=self.newer.percent,
            labels=self.newer.labels,
        )

    def as_pool(self) -> Pool:
        rating = self.rating
        return Pool(
            pool_id=self.id,
            name=self.name,
            revision=self.revision,
            mode=Mode(self.mode),
            terms=self.as_terms(Fee(**fee.model_dump()) for fee in self.fees),
            least_client_version=self.least_client_version,
            most_party=self.most_party,
            rating=None
            if rating is None
            else Rating(
                currency=rating.currency,
                book=rating.book,
                spread=Spread(
                    points=rating.spread,
                    widen_per_second=rating.widen_per_second,
                    widest=rating.widest,
                ),
            ),
            rematch_after_ms=self.rematch_after_ms,
            fill_with_bots_after_ms=self.fill_with_bots_after_ms,
            backfill=self.backfill,
        )


class _RoomFee(_Fee):
    paid_by: Literal["each", "owner"] = "each"


_Choice = bool | int | Annotated[str, Field(max_length=64)]


class _Room(_Played):
    """A kind of private room."""

    id: _Id
    name: str = Field(min_length=1, max_length=128)
    choices: dict[_Id, list[_Choice]] = Field(default_factory=dict, max_length=32)
    fees: list[_RoomFee] = Field(default_factory=list, max_length=4)

    def as_template(self) -> Template:
        return Template(
            template_id=self.id,
            name=self.name,
            choices={name: tuple(values) for name, values in self.choices.items()},
            terms=self.as_terms(
                Fee(
                    currency=fee.currency,
                    book=fee.book,
                    amount=fee.amount,
                    by_owner=fee.paid_by == "owner",
                )
                for fee in self.fees
            ),
        )


class _File(BaseModel):
    model_config = _BARE

    pools: list[_Pool] = Field(min_length=1, max_length=256)
    rooms: list[_Room] = Field(default_factory=list, max_length=256)

    @field_validator("pools", "rooms")
    @classmethod
    def _each_id_once(cls, pools: list[_Pool] | list[_Room]) -> list[_Pool] | list[_Room]:
        ids = [pool.id for pool in pools]
        for pool_id in ids:
            if ids.count(pool_id) > 1:
                raise ValueError(f"the id {pool_id} is given twice")
        return pools


@dataclass(frozen=True, slots=True)
class Offers:
    """What a file offers."""

    pools: Mapping[str, Offer]
    """By id, in the order of the file."""
    rooms: Mapping[str, Template]
    """The kinds of private rooms."""


def load_pools(path: Path | None = None) -> Offers:
    """What a file offers; without a path the file that comes with the service.

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


def parse_pools(text: str, name: str = "pools") -> Offers:
    """What a text offers; each complaint names the line, the key and what is wrong with it."""
    try:
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadPools(f"{name}: not YAML: {error}") from None
    try:
        parsed = _File.model_validate(content)
    except ValidationError as error:
        raise BadPools(_told(error, name, tree)) from None
    pools = {}
    for number, pool in enumerate(parsed.pools):
        newer = None
        if pool.newer is not None:
            newer = _newer(pool, pool.newer, content["pools"][number], name, tree, number)
        pools[pool.id] = pool.as_offer(newer)
    return Offers(pools, {room.id: room.as_template() for room in parsed.rooms})


def _newer(pool: _Pool, newer: _Newer, content: Any, name: str, tree: Any, number: int) -> _Pool:
    """The newer revision of a pool, which has what the pool has but for its changes."""
    at = ("pools", number, "newer")
    if newer.revision <= pool.revision:
        raise BadPools(
            f"{name}:{_line(tree, (*at, 'revision'))}: pools[{number}].newer.revision: must be "
            f"greater than {pool.revision}, which the pool has"
        )
    fixed = sorted({"id", "newer", "revision"} & newer.changes.keys())
    if fixed:
        raise BadPools(
            f"{name}:{_line(tree, (*at, 'changes', fixed[0]))}: "
            f"pools[{number}].newer.changes.{fixed[0]}: cannot be changed here"
        )
    whole = {key: value for key, value in content.items() if key != "newer"}
    whole |= newer.changes | {"revision": newer.revision}
    try:
        return _Pool.model_validate(whole)
    except ValidationError as error:
        raise BadPools(_told(error, name, tree, (*at, "changes"))) from None


def _told(error: ValidationError, name: str, tree: Any, at: tuple[str | int, ...] = ()) -> str:
    """The complaints of a validation, each with its line."""
    problems = error.errors(include_url=False, include_context=False)
    lines = [_line(tree, (*at, *problem["loc"])) for problem in problems]
    return "\n".join(
        complaint.replace(f"{name}: ", f"{name}:{line}: ", 1)
        for line, complaint in zip(lines, complaints(error, name, at), strict=True)
    )


def _line(tree: Any, path: Sequence[str | int]) -> int:
    """The line, from 1, of what a path leads to, or of the last on the way that is there."""
    node, line = tree, 1
    for part in path:
        line = node.start_mark.line + 1 if node is not None else line
        if isinstance(node, yaml.MappingNode):
            found = [(key, value) for key, value in node.value if key.value == part]
            if not found:
                return line
            line = found[0][0].start_mark.line + 1
            node = found[0][1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            return line
    return line


def unplayable(offers: Offers, rule_sets: Sequence[rules_pb2.RuleSet]) -> list[str]:
    """What evaluators that list these rule sets cannot play, each with its pool or kind of room.

    The newest revision of a rule set comes first in the list.
    """
    pools = [
        f"pool {pool.pool_id}: {complaint}"
        for offer in offers.pools.values()
        for pool in offer.pools
        for complaint in (*_complaints(pool.terms, rule_sets), *_no_backfill(pool, rule_sets))
    ]
    rooms = [
        f"room {room.template_id}: {complaint}"
        for room in offers.rooms.values()
        for terms in (
            room.terms,
            *(
                replace(room.terms, options={name: value})
                for name, values in room.choices.items()
                for value in values
            ),
        )
        for complaint in _complaints(terms, rule_sets)
    ]
    return pools + rooms


def costing_otherwise(before: Mapping[str, Offer], after: Mapping[str, Offer]) -> list[str]:
    """The pools in which the same revision would cost something else than before."""
    return [
        f"pool {old.pool_id}: revision {old.revision} would cost something else; give it a new one"
        for offer in before.values()
        for old in offer.pools
        if old.pool_id in after
        and (new := after[old.pool_id].revision(old.revision)) is not None
        and not new.terms.costs_the_same(old.terms)
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


def _no_backfill(pool: Pool, rule_sets: Sequence[rules_pb2.RuleSet]) -> Iterator[str]:
    terms = pool.terms
    for known in rule_sets:
        if known.id == terms.rule_set and terms.revision in (0, known.revision):
            if pool.backfill and not known.starts_over:
                yield (
                    f"backfill: {terms.rule_set} does not start over when a player leaves, its "
                    "tables close; take backfill away"
                )
            return


def _takes(option: rules_pb2.OptionSpec, value: OptionValue) -> bool:
    if isinstance(value, bool):
        return option.type == rules_pb2.OPTION_TYPE_BOOL
    if isinstance(value, int):
        fits = option.minimum <= value <= option.maximum
        return option.type == rules_pb2.OPTION_TYPE_INTEGER and fits
    return option.type == rules_pb2.OPTION_TYPE_CHOICE and value in option.choices
