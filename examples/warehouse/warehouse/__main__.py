"""python -m warehouse sync | follow | query [NAME]; see --help."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections import Counter
from pathlib import Path

import duckdb
import grpc.aio

from fangcheng_client import connect, explain

from .asking import QUERIES, open_lake
from .lake import OF_STREAM, LakeDamaged, LakeInUse
from .reading import read


def main() -> int:
    """Run a command; its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m warehouse",
        description="Finished hands and the ledger as Parquet, asked with DuckDB.",
    )
    parser.add_argument("--lake", type=Path, default=Path("lake"), help="folder of the files")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, what in (("sync", "read all that there is"), ("follow", "go on until Ctrl-C")):
        reading = commands.add_parser(name, help=what)
        reading.add_argument("--table", default="127.0.0.1:7101", metavar="HOST:PORT")
        reading.add_argument("--wallet", default="127.0.0.1:7102", metavar="HOST:PORT")
        reading.add_argument("--ca", type=Path, help="certificates to trust; TLS is used then")
        reading.add_argument(
            "--token-file",
            type=Path,
            help="an operator's or a service's token, read again at each call; "
            "default: FANGCHENG_TOKEN",
        )
    asking = commands.add_parser("query", help="ask one of the questions that come with it")
    asking.add_argument("name", nargs="?", choices=sorted(QUERIES), help="default: list them")
    arguments = parser.parse_args()
    try:
        if arguments.command == "query":
            return query(arguments.lake, arguments.name)
        asyncio.run(reading_both(arguments))
    except KeyboardInterrupt:
        return 130
    except (LakeDamaged, LakeInUse, OSError, duckdb.Error) as error:
        return failed(str(error))
    except grpc.aio.AioRpcError as error:
        problem = explain(error)
        return failed(f"{problem}\n{problem.cure()}")
    return 0


def query(lake: Path, name: str | None) -> int:
    """Print what a question is answered, or which there are."""
    if name is None:
        for known, text in QUERIES.items():
            print(f"{known:12} {text.splitlines()[0].removeprefix('-- ')}")
    else:
        open_lake(lake).sql(QUERIES[name]).show(max_rows=100)
    return 0


async def reading_both(arguments: argparse.Namespace) -> None:
    """Read both streams at once; the first that fails ends the other."""
    rows: Counter[str] = Counter()

    def told(stream: str, count: int) -> None:
        rows[stream] += count
        said = " · ".join(f"{rows[name]:,} rows of {name}" for name in OF_STREAM)
        print(f"\r{said}", end="", file=sys.stderr, flush=True)

    def token() -> str:
        if arguments.token_file is not None:
            return str(arguments.token_file.read_text("utf-8").strip())
        return os.environ.get("FANGCHENG_TOKEN", "")

    credentials = None
    if arguments.ca is not None:
        credentials = grpc.ssl_channel_credentials(arguments.ca.read_bytes())
    try:
        async with (
            connect(arguments.table, token, credentials=credentials) as table,
            connect(arguments.wallet, token, credentials=credentials) as wallet,
            asyncio.TaskGroup() as group,
        ):
            for stream, channel in (("hands", table), ("entries", wallet)):
                follow = arguments.command == "follow"
                group.create_task(read(stream, channel, arguments.lake, told, follow=follow))
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    finally:
        print(file=sys.stderr)


def failed(what: str) -> int:
    """Say what was wrong."""
    print(f"error: {what}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
