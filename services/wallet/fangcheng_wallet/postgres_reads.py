"""What is read of a PostgreSQL ledger: each function within one snapshot."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from heapq import merge
from itertools import islice
from typing import Any

import asyncpg

from fangcheng_wallet.audit import AccountRow, HoldRow, OperationRow, PostingRow
from fangcheng_wallet.boards import Score
from fangcheng_wallet.canonical import loads
from fangcheng_wallet.chain import START, LinkedOperation, with_postings
from fangcheng_wallet.errors import UnknownHold, UnknownSettlement, UnknownWallet
from fangcheng_wallet.ledger import (
    AccountKey,
    Balance,
    Entry,
    Hold,
    Kind,
    LeaderboardQuery,
    Player,
    Reversal,
    Settle,
    Settled,
    Settlement,
    StatementQuery,
    StreamedEntry,
)
from fangcheng_wallet.postgres_writer import HOLDS, PLAYERS, hold
from fangcheng_wallet.rows import balances_of, entry, streamed
from fangcheng_wallet.store import Page, Pulse
