"""What columns cost on their way to Python: `python -m querymesh_lab.bench.guest.columns_sent`.

A filter whose Arrow function does nothing is sent a text and a number, and up to eight columns
more. Forms take turns; the least time of each counts.
"""

from __future__ import annotations

import tempfile
import typing
from collections.abc import Iterator, Sequence
from time import perf_counter

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.functions import arrow_udf

import querymesh as qm

ROWS, ROUNDS, WARM_UP = 1_000_000, 9, 2
NUMBERS = [f"id * {k} % 97 AS n{k}" for k in range(1, 9)]
TEXTS = [f"concat('value-', id * {k} % 300) AS t{k}" for k in range(1, 9)]
READ = ("payload", "id")


def forms() -> dict[str, list[Column]]:
    """What is sent beside the columns that are read."""
    numbers, texts = ([F.col(f"{kind}{k}") for k in range(1, 9)] for kind in "nt")
    nothing = [F.lit(None).cast(kind) for kind in ("bigint", "string") for _ in range(4)]
    return {
        "nothing": [],
        "eight numbers": numbers,
        "four numbers, four texts": numbers[:4] + texts[:4],
        "eight texts": texts,
        "eight NULLs": nothing,
    }


def filtered(frame: DataFrame, more: Sequence[Column]) -> DataFrame:
    """The frame under a Python filter that lets everything pass."""

    def passes(parts: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        for arrays in parts:
            yield pa.repeat(True, len(arrays[0]))

    passes.__annotations__ = {
        "parts": typing.Iterator[typing.Tuple[pa.Array, ...]],  # noqa: UP006
        "return": typing.Iterator[pa.Array],
    }
    send: typing.Any = arrow_udf
    return frame.filter(send(passes, "boolean")(*map(F.col, READ), *more)).select("id")


def main() -> None:
    """Print what each form takes more than the columns that are read."""
    spark = qm.local_session()
    with tempfile.TemporaryDirectory() as folder:
        payload = "concat('GET /index/', id % 1000) AS payload"
        made = spark.range(0, ROWS, 1, 2).selectExpr("id", payload, *NUMBERS, *TEXTS)
        made.write.parquet(f"{folder}/rows")
        frame = spark.read.parquet(f"{folder}/rows")
        least = dict.fromkeys(forms(), float("inf"))
        for turn in range(ROUNDS):
            for name, more in forms().items():
                started = perf_counter()
                filtered(frame, more).write.format("noop").mode("overwrite").save()
                if turn >= WARM_UP:
                    least[name] = min(least[name], perf_counter() - started)
        for name, seconds in least.items():
            more_us = 1e6 * (seconds - least["nothing"]) / ROWS
            print(f"{name:28}{seconds:8.3f} s{more_us:8.3f} µs a row more")


if __name__ == "__main__":
    main()
