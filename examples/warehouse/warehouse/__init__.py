"""Finished hands and the ledger as Parquet files by day, each row once, for DuckDB to ask."""
