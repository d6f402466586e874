"""The lake as DuckDB's tables, and the questions that come with it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import duckdb
import pyarrow as pa

from .lake import SCHEMAS

QUERIES = {
    file.name.removesuffix(".sql"): file.read_text("utf-8")
    for file in sorted(files("warehouse").joinpath("queries").iterdir(), key=lambda file: file.name)
    if file.name.endswith(".sql")
}
"""The questions by name, as SQL; the first line of each says what it asks."""

_KEYS = {
    "hands": "table_id, hand_number",
    "seats": "table_id, hand_number, seat",
    "items": "table_id, hand_number, seat, item",
    "transfers": "table_id, hand_number, number",
    "entries": "sequence",
}
"""What is a row's own; the stream of hands may send one again after its server has failed."""


def open_lake(folder: Path) -> duckdb.DuckDBPyConnection:
    """A DuckDB in memory with a view of each table of the lake; `day` is a column of each."""
    db = duckdb.connect()
    for table, schema in SCHEMAS.items():
        if next(folder.glob(f"{table}/day=*/*.parquet"), None) is None:
            db.register(table, pa.table({**_empty(schema), "day": pa.array([], pa.date32())}))
            continue
        where = str(folder / table / "day=*" / "*.parquet").replace("'", "''")
        db.execute(
            f"CREATE VIEW {table} AS SELECT DISTINCT ON ({_KEYS[table]}) * FROM"  # noqa: S608 # our names
            f" read_parquet('{where}', hive_partitioning = true, hive_types = {{'day': DATE}})"
        )
    return db


def _empty(schema: pa.Schema) -> dict[str, pa.Array]:
    return {field.name: pa.array([], field.type) for field in schema}
