"""Conditions that ask a real endpoint: the rows of plain Spark in fewer calls, whatever fails."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType

import querymesh as qm
from querymesh_lab.bench.costly.client import ask, ask_async
from querymesh_lab.bench.costly.endpoint import Endpoint
from querymesh_lab.bench.costly.manners import Manners
from querymesh_lab.bench.costly.questions import rule_of

ROWS, TEXTS, WORKERS = 480, 12, 2
FIRST, SECOND = "share 60 first", "share 40 second"
POLICIES = ("mesh", "single", "cbr")


@pytest.fixture(scope="module")
def shared() -> Iterator[Endpoint]:
    with Endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def endpoint(shared: Endpoint) -> Endpoint:
    shared.behave(Manners(delay_s=0.005))
    return shared


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    """Few texts, each in many rows, and some rows without one."""
    texts = [f"text {row % TEXTS}" if row % 40 else None for row in range(ROWS)]
    return pa.table({"id": range(ROWS), "text": texts, "kind": [row % 3 for row in range(ROWS)]})


@pytest.fixture(scope="module")
def files(rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rows in files, one for a batch of a stream."""
    folder = tmp_path_factory.mktemp("rows")
    for part in range(4):
        length = ROWS // 4
        pq.write_table(rows.slice(part * length, length), folder / f"part-{part}.parquet")
    return folder


def asked(endpoint: Endpoint, question: str, **options: Any) -> qm.Predicate:
    address = endpoint.address

    def fn(text: str | None) -> bool:
        return bool(ask(address, question, [text])[0])

    settings = {"columns": ["text"], "name": question.split()[-1], "vectorised": False, **options}
    return qm.predicate(fn, **settings)


def by_rules(rows: pa.Table, *questions: str) -> list[int]:
    rules = [rule_of(question) for question in questions]
    told = zip(rows["id"].to_pylist(), rows["text"].to_pylist(), strict=True)
    return [number for number, text in told if all(rule(text) for rule in rules)]


def ids(df: DataFrame) -> list[int]:
    return sorted(row.id for row in df.select("id").collect())


@pytest.mark.parametrize("policy", POLICIES)
def test_a_batch_has_the_rows_of_plain_spark_in_a_call_a_text_and_worker(
    spark: SparkSession, endpoint: Endpoint, rows: pa.Table, files: Path, policy: str
) -> None:
    df = spark.read.parquet(str(files))
    conditions = [asked(endpoint, each, concurrency=4) for each in (FIRST, SECOND)]
    out = df.transform(qm.where(*conditions, policy=policy))
    assert ids(out) == by_rules(rows, FIRST, SECOND)
    counts = endpoint.counts()
    assert all(each.calls <= WORKERS * (TEXTS + 1) for each in counts.by_question.values())
    assert counts.most_at_once <= WORKERS * 4
    first, second = (F.udf(each.fn, BooleanType(), useArrow=False) for each in conditions)
    assert ids(df.filter(first("text") & second("text"))) == ids(out)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_stream_has_the_rows_of_plain_spark(
    spark: SparkSession,
    endpoint: Endpoint,
    rows: pa.Table,
    files: Path,
    tmp_path: Path,
    policy: str,
) -> None:
    schema = spark.read.parquet(str(files)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    conditions = [asked(endpoint, each, concurrency=4) for each in (FIRST, SECOND)]
    checkpoint = str(tmp_path / "checkpoint")
    stream = reader.parquet(str(files))
    out = stream.transform(qm.where(*conditions, policy=policy, checkpoint=checkpoint))
    running = (
        out.writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    assert running.awaitTermination(120)
    assert ids(spark.read.parquet(str(tmp_path / "out"))) == by_rules(rows, FIRST, SECOND)
    calls = {name: each.calls for name, each in endpoint.counts().by_question.items()}
    assert max(calls.values()) <= (WORKERS + 1) * (TEXTS + 1), "the driver, which learns, too"


def test_run_asks_as_where_does(
    spark: SparkSession, endpoint: Endpoint, rows: pa.Table, files: Path
) -> None:
    query = qm.query(
        "SELECT id, text FROM S WHERE first(text) AND kind < 3",
        functions={"first": asked(endpoint, FIRST, concurrency=4)},
    )
    out = qm.run(query, {"S": spark.read.parquet(str(files))})
    assert ids(out) == by_rules(rows, FIRST)
    assert endpoint.counts().calls <= WORKERS * (TEXTS + 1)


def test_a_batch_of_inputs_is_one_call(
    spark: SparkSession, endpoint: Endpoint, rows: pa.Table, files: Path
) -> None:
    address = endpoint.address

    def fn(texts: pa.Array) -> list[bool]:
        return ask(address, FIRST, texts.to_pylist())

    together = qm.predicate(fn, columns=["text"], batch=50, memo=True)
    out = spark.read.parquet(str(files)).transform(qm.where(together))
    assert ids(out) == by_rules(rows, FIRST)
    counts = endpoint.counts()
    assert counts.calls < counts.inputs <= WORKERS * (TEXTS + 1)


def test_an_async_function_is_awaited(
    spark: SparkSession, endpoint: Endpoint, rows: pa.Table, files: Path
) -> None:
    address = endpoint.address

    async def fn(text: str | None) -> bool:
        return bool((await ask_async(address, FIRST, [text]))[0])

    awaited = qm.predicate(fn, columns=["text"], vectorised=False, concurrency=8)
    out = spark.read.parquet(str(files)).transform(qm.where(awaited))
    assert ids(out) == by_rules(rows, FIRST)
    assert endpoint.counts().calls <= WORKERS * (TEXTS + 1)


def test_a_sort_a_join_with_itself_and_a_limit_ask_nothing_twice(
    spark: SparkSession, endpoint: Endpoint, rows: pa.Table, files: Path, tmp_path: Path
) -> None:
    memo = qm.Memo(path=str(tmp_path / "answers"))
    out = spark.read.parquet(str(files)).transform(qm.where(asked(endpoint, FIRST, memo=memo)))
    expected = by_rules(rows, FIRST)
    assert [row.id for row in out.sort("id").collect()] == expected
    calls = endpoint.counts().calls
    assert calls <= WORKERS * (TEXTS + 1)
    assert out.join(out.select("id"), "id").count() == len(expected)
    assert out.limit(5).count() == 5
    assert endpoint.counts().calls == calls


def test_what_is_not_deterministic_is_asked_for_every_row(
    spark: SparkSession, endpoint: Endpoint, rows: pa.Table, files: Path
) -> None:
    fresh = asked(endpoint, FIRST, deterministic=False, concurrency=8)
    out = spark.read.parquet(str(files)).transform(qm.where(fresh))
    assert ids(out) == by_rules(rows, FIRST)
    assert endpoint.counts().calls >= ROWS


def test_faults_are_tried_again_until_there_is_an_answer(
    spark: SparkSession, endpoint: Endpoint, rows: pa.Table, files: Path
) -> None:
    endpoint.behave(
        Manners(error=0.2, busy=0.1, garbage=0.1, drop=0.1, hang=0.05, faults_in_a_row=2)
    )
    patient = asked(endpoint, FIRST, concurrency=4, retries=2, timeout_s=2.0)
    out = spark.read.parquet(str(files)).transform(qm.where(patient))
    assert ids(out) == by_rules(rows, FIRST)
    assert endpoint.counts().faults


@pytest.mark.parametrize(
    ("manners", "told"),
    [
        (Manners(error=1.0), "FailedError: 500"),
        (Manners(garbage=1.0), "GarbageError: no answer is in"),
        (Manners(hang=1.0), r"no answer within 0.2 s \(timeout_s\)"),
    ],
)
def test_an_endpoint_that_never_answers_rightly_ends_the_query_with_its_reason(
    spark: SparkSession, endpoint: Endpoint, files: Path, manners: Manners, told: str
) -> None:
    endpoint.behave(manners)
    hasty = asked(endpoint, FIRST, concurrency=4, retries=1, timeout_s=0.2)
    with pytest.raises(Exception, match=told):
        spark.read.parquet(str(files)).transform(qm.where(hasty)).count()


def test_a_limit_of_the_whole_job_keeps_callers_within_the_endpoints(
    spark: SparkSession, endpoint: Endpoint, rows: pa.Table, files: Path
) -> None:
    endpoint.behave(Manners(limit_per_s=40.0))
    limited = asked(endpoint, FIRST, deterministic=False, concurrency=8, rate_limit=30.0)
    some = spark.read.parquet(str(files)).filter("id % 8 = 0")
    out = some.transform(qm.where(limited))
    assert ids(out) == [number for number in by_rules(rows, FIRST) if number % 8 == 0]
    assert endpoint.counts().faults == {}
