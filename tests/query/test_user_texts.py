"""What a user writes, Spark reads by itself; our reading of the same text gives the same values.

Both of our readings are compared: Arrow's evaluation, and the Spark SQL that is rendered for
Catalyst, which must never raise. Where Spark raises on some row, as ANSI mode asks of it, the rows
are compared on which we have a value; what binding refuses is left to Spark anyway.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from querymesh.errors import QueryMeshError
from querymesh.query.bind.infer import typed
from querymesh.query.evaluate import evaluate
from querymesh.query.expr import Expr
from querymesh.query.parse.query import condition_of
from querymesh.query.render import spark_sql
from querymesh.query.types import Kind, kind_of
from querymesh.spark.schema import arrow_schema
from random_texts import odd_table, random_texts

ROUNDS = [(seed, zone) for seed, zone in enumerate(("UTC", "America/New_York", "Asia/Kolkata"))]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """From a file, because Spark evaluates expressions on local rows without generated code."""
    made: Path = tmp_path_factory.mktemp("texts") / "rows.parquet"
    pq.write_table(odd_table(), made)
    return str(made)


@pytest.fixture
def zoned(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield spark
    spark.conf.set("spark.sql.session.timeZone", "UTC")


class Reading:
    """One text in our reading, and its values on the rows."""

    def __init__(self, text: str, tree: Expr, rows: pa.Table) -> None:
        self.text, self.tree = text, tree
        values = evaluate(tree, lambda c: rows[c.name].combine_chunks(), rows.num_rows, {})
        self.values = [_plain(value) for value in values.to_pylist()]

    def differs(self, theirs: dict[int, object], who: str) -> list[str]:
        return [
            f"{self.text}: ours {self.values[row]!r}, {who} {value!r} in row {row}; "
            f"rendered {spark_sql(self.tree)}"
            for row, value in theirs.items()
            if self.values[row] != value
        ][:1]


def readings(texts: Sequence[str], rows: pa.Table) -> list[Reading]:
    found = []
    for text in texts:
        try:
            expr = condition_of(text, {})
            tree, dtype = typed(expr, lambda c: rows.schema.field(c.name).type, {})
        except QueryMeshError:
            continue
        if kind_of(dtype) is not Kind.NULL:
            found.append(Reading(text, tree, rows))
    return found


def on_spark(frame: DataFrame, texts: Sequence[str]) -> list[dict[int, object]]:
    answer = frame.selectExpr("id", *(f"{text} AS c{i}" for i, text in enumerate(texts))).toArrow()
    ids = answer["id"].to_pylist()
    columns = (map(_plain, answer[f"c{i}"].to_pylist()) for i in range(len(texts)))
    return [dict(zip(ids, column, strict=True)) for column in columns]


def as_written(frame: DataFrame, found: Sequence[Reading]) -> list[tuple[Reading, dict]]:
    """Spark's own values of each text, on the rows on which it has some."""
    try:
        return list(zip(found, on_spark(frame, [each.text for each in found]), strict=True))
    except PySparkException as raised:
        if len(found) > 1:
            half = len(found) // 2
            return as_written(frame, found[:half]) + as_written(frame, found[half:])
        if isinstance(raised, AnalysisException):
            return []  # no text of Spark's, as greatest('2024-01-01', t)
    (each,) = found
    known = [row for row, value in enumerate(each.values) if value is not None]
    try:
        return [(each, *on_spark(frame.filter(frame.id.isin(known)), [each.text]))]
    except PySparkException:
        return []


@pytest.mark.parametrize(("seed", "zoned"), ROUNDS, indirect=["zoned"])
def test_a_users_text_means_to_us_what_it_means_to_spark(
    zoned: SparkSession, path: str, seed: int
) -> None:
    frame = zoned.read.parquet(path).coalesce(1)
    rows = frame.toArrow().cast(arrow_schema(frame))
    found = readings(random_texts(seed, 50), rows)
    assert len(found) > 30, "most texts are ours to read"
    wrong: list[str] = []
    rendered = on_spark(frame, [spark_sql(each.tree) for each in found])
    for each, theirs in zip(found, rendered, strict=True):
        wrong += each.differs(theirs, "Catalyst on ours")
    compared = as_written(frame, found)
    assert len(compared) > 20
    for each, theirs in compared:
        wrong += each.differs(theirs, "Spark")
    assert not wrong, "\n".join(wrong)


def test_what_people_trip_over_means_what_it_means_to_spark(spark: SparkSession, path: str) -> None:
    texts = [
        "k > 9007199254740992.5", "p = k", "n = o", "f + g > 0.3", "f = 0.1", "floor(x) = 0",
        "d = '2024-02-29 10:00:00'", "nullif(k, 2.5)", "k BETWEEN 9007199254740993 AND 1e300",
        "m / 3", "k / 2.5", "r % 0.7", "m IN (1, 0.1)", "o % p = 0", "coalesce(m, q, k)",
        "CAST(s AS DECIMAL(10,2))", "m * n", "n * n", "o + 0.5",
    ]  # fmt: skip
    frame = spark.read.parquet(path).coalesce(1)
    rows = frame.toArrow().cast(arrow_schema(frame))
    found = readings(texts, rows)
    assert len(found) == len(texts)
    compared = as_written(frame, found)
    assert len(compared) == len(texts)
    wrong = [line for each, theirs in compared for line in each.differs(theirs, "Spark")]
    assert not wrong, "\n".join(wrong)


def _plain(value: object) -> object:
    """Values that are equal when SQL calls them equal."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    zone = getattr(value, "tzinfo", None)
    return value.timestamp() if zone is not None else value  # type: ignore[attr-defined]
