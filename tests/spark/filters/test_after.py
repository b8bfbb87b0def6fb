"""`after=`: a predicate never meets a row that its guard drops, wherever either of them runs."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.functions import udf

import querymesh as qm
from equivalence import as_multiset

ROWS = 3000
GUARDS = {
    "comparison": "m = 0",
    "pattern": "text RLIKE '^ok-'",
    "opaque": "sha2(string(m), 256) = sha2('0', 256)",
    "may raise": "split(text, '-')[1] = 'yes'",
    "function": None,
    "udf": None,
}
"""Conditions that hold of every third row, each in another way."""

DEAR = qm.policies.Mesh(sample_rows=300)
WAYS = {
    "as written": {},
    "learned": {"policy": DEAR},
    "single": {"policy": qm.policies.Single(sample_rows=300)},
    "fabric": {"engine": "fabric"},
    "eddy": {"policy": "eddy"},
    "cbr": {"policy": "cbr"},
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("after") / "in"
    folder.mkdir()
    for part in range(3):
        n = range(part * ROWS // 3, (part + 1) * ROWS // 3)
        text = [f"ok-yes-{k}" if k % 3 == 0 else f"no-no-{k}" for k in n]
        table = pa.table({"n": list(n), "m": [k % 3 for k in n], "text": text})
        pq.write_table(table, folder / f"part-{part}.parquet")
    return str(folder)


def conditions(guard, told, *, late, dear):
    """A guard, what stands behind it, and another function that is written first.

    `told` is a file of the rows that were met and should not have been. The function behind the
    guard is declared as cheap as can be, and the guard as `dear` if it is one of ours, so that
    nothing but `after=` keeps them apart.
    """

    def behind(n):
        if n % 3:
            with Path(told).open("a") as file:
                file.write(f"{n}\n")
        return n % 2 == 0

    def seldom(n):
        return n % 5 != 0

    def is_ok(text):
        return text.startswith("ok-")

    written = GUARDS[guard]
    if guard == "function":
        cost = 500.0 if dear else None
        given = qm.predicate(is_ok, columns=["text"], vectorised=False, cost_us=cost)
        written = "is_ok"
    elif guard == "udf":
        given, written = udf(is_ok, "boolean")("text"), "is_ok(text)"
    else:
        given = written
    last = qm.predicate(behind, columns=["n"], vectorised=False, after=[written], cost_us=0.001)
    first = qm.predicate(seldom, columns=["n"], vectorised=False, cost_us=50.0)
    return [first, last, given] if late else [first, given, last]


CHAINED = ["text RLIKE 'o'", "split(text, '-')[0] <> 'x'"]
"""What is written before a guard that may raise, and so comes before it: another that may raise."""

PLAIN = "m = 0 AND n % 2 = 0 AND n % 5 <> 0"


def checked(told, found, frame):
    assert not told.exists(), f"rows that the guard drops: {told.read_text()[:80]!r}"
    assert as_multiset(found.toArrow()) == as_multiset(frame.filter(PLAIN).toArrow())


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("guard", GUARDS)
def test_a_batch_keeps_a_predicate_behind_its_guard(spark, stored, tmp_path, guard, way, late):
    frame, told = spark.read.parquet(stored), tmp_path / "told"
    given = conditions(guard, told, late=late, dear=True)
    checked(told, frame.transform(qm.where(*given, **WAYS[way])), frame)


@pytest.mark.parametrize("way", WAYS)
def test_a_guard_that_has_guards_itself_stays_before_the_predicate(spark, stored, tmp_path, way):
    frame, told = spark.read.parquet(stored), tmp_path / "told"
    first, *rest = conditions("may raise", told, late=False, dear=True)
    given = [CHAINED[0], first, CHAINED[1], *rest]
    checked(told, frame.transform(qm.where(*given, **WAYS[way])), frame)


@pytest.mark.parametrize("policy", ["mesh", "single", "eddy", "cbr"])
@pytest.mark.parametrize("guard", GUARDS)
def test_a_stream_keeps_a_predicate_behind_its_guard(spark, stored, tmp_path, guard, policy):
    frame, told = spark.read.parquet(stored), tmp_path / "told"
    stream = spark.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1).parquet(stored)
    given = conditions(guard, told, late=False, dear=True)
    out = stream.transform(qm.where(*CHAINED, *given, policy=policy))
    writer = out.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    assert writer.trigger(availableNow=True).start().awaitTermination(120)
    checked(told, spark.read.parquet(str(tmp_path / "out")), frame)
