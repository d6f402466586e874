"""What a batch puts on disk, as the parameters of the one statement that writes it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from fangcheng_wallet.batch import Step, Terms
from fangcheng_wallet.desk import bounds
from fangcheng_wallet.ledger import AccountKey

_CONTROL = re.compile(r"[\x00-\x1f]")
_encode = msgspec.json.Encoder(order="sorted").encode

# The postings come first, and before them the lock of the ledger's end: who took a number before it
# is its turn would have others wait for it who have the turn.
WRITE = """
WITH
opened AS (
    INSERT INTO players (player_id, is_bot, opened_us) SELECT one.*, $2 FROM unnest(
        $1::text::text[], $50::text::boolean[]
    ) AS one
),
frozen AS (
    UPDATE players SET frozen = one.frozen, reason = one.reason, case_id = one.case_id,
        changed_us = one.changed_us
    FROM unnest(
        $3::text::text[], $4::text::boolean[], $5::text::text[], $6::text::text[],
        $7::text::bigint[]
    )
        AS one (player_id, frozen, reason, case_id, changed_us)
    WHERE players.player_id = one.player_id
),
accounted AS (
    INSERT INTO accounts (id, kind, owner, player_id, currency, book, floor)
    SELECT * FROM unnest(
        $8::text::bigint[], $9::text::text[], $10::text::text[], $11::text::text[],
        $12::text::text[], $13::text::text[], $14::text::bigint[]
    )
),
operated AS (
    INSERT INTO operations SELECT * FROM unnest(
        $15::text::bigint[], $16::text::text[], $17::text::text[], $18::text::bigint[],
        $19::text::text[], $20::text::text[], $21::text::bigint[], $22::text::bigint[],
        $23::text::jsonb[]
    )
),
placed AS (
    INSERT INTO holds
    SELECT hold_id, account, player_id, amount, state, table_id, expires_at_us, given_back,
        operation, operation
    FROM unnest(
        $24::text::text[], $25::text::bigint[], $26::text::text[], $27::text::bigint[],
        $28::text::text[], $29::text::text[], $30::text::bigint[], $31::text::bigint[],
        $32::text::bigint[]
    ) AS one (
        hold_id, account, player_id, amount, state, table_id, expires_at_us, given_back, operation
    )
),
changed AS (
    UPDATE holds SET amount = one.amount, state = one.state, table_id = one.table_id,
        expires_at_us = one.expires_at_us, given_back = one.given_back, changed_by = one.operation
    FROM unnest(
        $33::text::text[], $34::text::bigint[], $35::text::text[], $36::text::text[],
        $37::text::bigint[], $38::text::bigint[], $39::text::bigint[]
    ) AS one (hold_id, amount, state, table_id, expires_at_us, given_back, operation)
    WHERE holds.hold_id = one.hold_id
)
INSERT INTO postings SELECT one.* FROM (SELECT FROM head FOR UPDATE) AS turn, unnest(
        $40::text::bigint[], $41::text::bigint[], $42::text::bigint[], $43::text::bigint[],
        $44::text::bigint[], $45::text::bigint[], $46::text::text[], $47::text::text[],
        $48::text::text[], $49::text::bigint[]
    ) AS one
"""


class Rows:
    """What a batch puts on disk, as the columns of ``WRITE``."""

    def __init__(self, numbers: dict[AccountKey, int], terms: Terms, last_account: int) -> None:
        self._numbers = numbers
        self._terms = terms
        self.last_account = last_account
        self._opened: list[tuple[Any, ...]] = []
        self._frozen: list[tuple[Any, ...]] = []
        self._accounts: list[tuple[Any, ...]] = []
        self._operations: list[tuple[Any, ...]] = []
        self._placed: list[tuple[Any, ...]] = []
        self._changed: dict[str, tuple[Any, ...]] = {}
        self._postings: list[tuple[Any, ...]] = []

    def add(self, step: Step) -> None:
        """Add what one command puts on disk."""
        if step.opened is not None:
            self._opened.append((step.opened.player_id, step.opened.is_bot))
        one = step.operation
        if one is None:
            return
        players = {hold.account: hold.player_id for hold in step.placed}
        labels = _encode(one.labels).decode() if one.labels else None
        self._operations.append(
            (
                *(one.number, one.verb, one.key, one.time_us, one.body, one.answer),
                *(one.first_posting, one.last_posting, labels),
            )
        )
        number = one.first_posting
        for posting in step.postings:
            account = self._numbers.get(posting.account)
            if account is None:
                account = self._open(posting.account, players)
            self._postings.append(
                (
                    *(number, account, posting.version, one.number, posting.amount),
                    *(posting.balance_after, posting.reason, posting.reference, posting.memo),
                    one.time_us,
                )
            )
            number += 1
        for hold in step.placed:
            self._placed.append(
                (
                    *(hold.hold_id, self._numbers[hold.account], hold.player_id, hold.amount),
                    *(hold.state.value, hold.table_id, hold.expires_at_us, hold.given_back),
                    one.number,
                )
            )
        for hold in step.changed:
            self._changed[hold.hold_id] = (
                *(hold.hold_id, hold.amount, hold.state.value, hold.table_id),
                *(hold.expires_at_us, hold.given_back, one.number),
            )
        if step.player is not None:
            player = step.player
            self._frozen.append(
                (player.player_id, player.frozen, player.reason, player.case_id, player.time_us)
            )

    def _open(self, key: AccountKey, players: Mapping[AccountKey, str]) -> int:
        number = self.last_account = self.last_account + 1
        self._numbers[key] = number
        floor = bounds(key, self._terms.currencies)[0]
        owner = players.get(key, key.owner)
        self._accounts.append(
            (number, key.kind.value, key.owner, owner, key.currency, key.book, floor)
        )
        return number

    def columns(self, opened_us: int) -> Iterable[Any]:
        """The parameters."""
        opened, are_bots = _columns(self._opened, 2)
        yield opened
        yield opened_us
        # Of a player who is frozen twice the last one counts.
        yield from _columns(list({row[0]: row for row in self._frozen}.values()), 5)
        yield from _columns(self._accounts, 7)
        # Body, answer and labels.
        yield from _columns(self._operations, 9, json=(4, 5, 8))
        yield from _columns(self._placed, 9)
        yield from _columns(list(self._changed.values()), 7)
        yield from _columns(self._postings, 10)
        yield are_bots


def _columns(
    rows: Sequence[tuple[Any, ...]], width: int, json: Sequence[int] = ()
) -> Iterable[str]:
    """Rows as columns; ``json``: which of them are JSON, where no character is below a space."""
    if not rows:
        return ("{}",) * width
    columns = enumerate(zip(*rows, strict=True))
    return [_plain(column) if place in json else array(column) for place, column in columns]


def array(values: Iterable[Any]) -> str:
    """An array as PostgreSQL writes it: asyncpg takes a millisecond for a hundred elements."""
    column = list(values)
    text = _plain(column)
    if "\\" in text and any(isinstance(one, str) and _CONTROL.search(one) for one in column):
        return "{" + ",".join(map(_element, column)) + "}"
    return text


def _plain(values: Sequence[Any]) -> str:
    """That is JSON with other brackets, but for the characters that JSON writes with a letter."""
    return "{" + _encode(values).decode()[1:-1] + "}"


def _element(value: Any) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return "NULL" if value is None else str(value)
