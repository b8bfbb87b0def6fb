"""Joins of the same windowed streams in one pass on Spark: each gives what it gives by itself."""

import os
import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import querymesh as qm
from querymesh.errors import UnsupportedError
from shared_joins import other_case, shared
from soak import SOAK
from window_cases import MOST_ROWS, arrivals, as_multiset, case_of, results_of

SMALL = {"sample_rows": 20}
ROWS = 3_000
SECOND_US = 1_000_000

ALIKE = [
    "SELECT a.id AS a, b.id AS b FROM A a [RANGE 3 SECONDS], B b [RANGE 3 SECONDS] WHERE a.k = b.k",
    "SELECT x.id AS a, y.id AS b, x.v + y.v AS both FROM A x [RANGE 1 SECOND], "
    "B y [RANGE 3 SECONDS] WHERE x.k = y.k AND x.v > 40 AND x.v < y.v",
]
OTHER = (
    "SELECT a.id AS a, c.id AS c FROM A a [RANGE 2 SECONDS], C c [RANGE 2 SECONDS] "
    "WHERE a.m = c.m AND c.v <> 7"
)


def streams(seed: int = 0) -> dict[str, pa.Table]:
    """Three streams of some thirty seconds, with NULLs in their keys."""
    rng = np.random.default_rng(seed)

    def table() -> pa.Table:
        times = np.sort(rng.integers(0, 30 * SECOND_US, ROWS))
        return pa.table(
            {
                "ts": pa.array(times, pa.timestamp("us", "UTC")),
                "id": pa.array(range(ROWS), pa.int64()),
                "k": pa.array(rng.integers(0, 200, ROWS), mask=rng.random(ROWS) < 0.05),
                "m": pa.array(
                    [f"m{n}" for n in rng.integers(0, 150, ROWS)], mask=rng.random(ROWS) < 0.1
                ),
                "v": pa.array(rng.integers(0, 100, ROWS), pa.int64()),
            }
        )

    return {"A": table(), "B": table(), "C": table()}


def queries(*texts: str) -> list[qm.Query]:
    return [qm.query(text, time="ts") for text in texts]


def of(query: qm.Query, inputs: dict) -> dict:
    return {relation.name: inputs[relation.name] for relation in query.relations}


@pytest.fixture(scope="module")
def frames(spark):
    return {name: spark.createDataFrame(table) for name, table in streams().items()}


@pytest.mark.parametrize("policy", ["mesh", "single"])
def test_each_query_has_what_a_run_of_its_own_gives(frames, policy):
    asked = queries(*ALIKE, OTHER)
    with qm.run_all(asked, frames, policy=policy, shards=2) as results:
        for query, out in zip(asked, results, strict=True):
            alone = qm.run(query, of(query, frames), policy=policy)
            assert out.dtypes == alone.dtypes
            rows = as_multiset(out.toArrow())
            assert rows.total() > 100
            assert rows == as_multiset(alone.toArrow())


def test_queries_that_are_alike_store_and_probe_once(frames):
    asked = queries(*ALIKE)
    with qm.run_all(asked, of(asked[0], frames), policy="single", shards=2) as results:
        rows = [out.count() for out in results]
        run = qm.inspect(results)
        assert qm.inspect(results[1]) is run
        assert run.counts.rows_out == sum(rows)
        told = run.explain()
    alone = []
    for query in asked:
        out = qm.run(query, of(query, frames), policy="single", shards=2)
        out.count()
        alone.append(qm.inspect(out))
    assert run.arrived == alone[0].arrived
    assert run.probes == alone[0].probes < sum(each.probes for each in alone)
    assert "a: one state for q1, q2" in told
    assert "q1, q2 in one join: a.k = b.k" in told
    assert "then a.v < b.v [q2]" in told


def test_what_cannot_share_a_pass_is_refused_by_name(frames):
    (join,) = queries(ALIKE[0])
    with pytest.raises(UnsupportedError, match="q1 join windowed streams and q2 read one source"):
        qm.run_all([join, qm.query("SELECT id FROM C WHERE v > 3")], frames)
    with pytest.raises(UnsupportedError, match="policy 'eddy' is for one query"):
        qm.run_all(queries(*ALIKE), of(join, frames), policy="eddy")
    apart = OTHER.replace("A a", "C a")
    asked = [join, *queries(apart)]
    with pytest.raises(UnsupportedError, match="no stream in common"):
        qm.run_all(asked, frames, shards=2)
    with qm.run_all(asked, frames) as results:
        assert qm.inspect(results).cube.shards == 1
        alone = qm.run(asked[1], {"C": frames["C"]})
        assert as_multiset(results[1].toArrow()) == as_multiset(alone.toArrow())


def test_what_only_spark_understands_of_a_query_is_its_own(frames):
    asked = queries(
        ALIKE[0],
        "SELECT x.id AS a, hex(y.v) AS h FROM A x [RANGE 3 SECONDS], B y [RANGE 3 SECONDS] "
        "WHERE x.k = y.k AND hex(x.v) LIKE '%A%'",
    )
    given = of(asked[0], frames)
    with qm.run_all(asked, given, sample=given, policy=qm.policies.Single(**SMALL)) as results:
        for query, out in zip(asked, results, strict=True):
            alone = qm.run(query, given)
            assert out.dtypes == alone.dtypes
            rows = as_multiset(out.toArrow())
            assert rows.total() > 100
            assert rows == as_multiset(alone.toArrow())


@pytest.mark.parametrize("index", ["amri", "bitmap"])
def test_a_stream_learns_for_each_group_by_itself(spark, tmp_path, index):
    tables, asked = streams(2), queries(f"{ALIKE[0]} AND a.v <> b.v AND a.v + b.v > 50", OTHER)
    inputs = {
        name: file_stream(spark, tmp_path / name, table, [0, 1, 2, 3])
        for name, table in tables.items()
    }
    found = [Counter() for _ in asked]
    checkpoint = str(tmp_path / "checkpoint")
    policy = qm.policies.Mesh(sample_rows=100)
    results = qm.run_all(
        asked, inputs, checkpoint=checkpoint, watermark="1 hour", index=index, policy=policy
    )

    def take(query: int, rows, batch: int) -> None:
        found[query].update(as_multiset(rows.toArrow()))
        run.wait_until_learned(20)

    run = qm.inspect(results)
    writer = results.write_each(take).option("checkpointLocation", checkpoint)
    assert writer.trigger(availableNow=True).start().awaitTermination(180)
    assert not run.problems
    assert run.views["a [q1]"].version > 0
    for query, rows in zip(asked, found, strict=True):
        batch = {name: spark.createDataFrame(tables[name]) for name in of(query, tables)}
        assert rows == as_multiset(qm.run(query, batch, policy="single").toArrow())


def random_queries(seed: int, rows: bool):
    """Random queries over the same inputs that can share a pass, and DuckDB's combinations."""
    for number in range(seed, 10**9, 1000):
        rng = random.Random(number)
        many = rng.choice([2, 3])
        first = case_of(rng, many, MOST_ROWS[many], rows, plain=True)
        cases = [first, other_case(rng, first), other_case(rng, first)]
        if any(case.counts_rows for case in cases) == rows and can_share(cases):
            found = [case.combinations(3000) for case in cases]
            if all(5 < each.num_rows < 3000 for each in found):
                yield cases, found


def can_share(cases) -> bool:
    try:
        shared(cases)
    except UnsupportedError:
        return False
    return True


@pytest.mark.parametrize("seed", range(1, 4 + 8 * SOAK))
def test_a_batch_of_any_joins_gives_what_duckdb_gives_for_each(spark, seed):
    cases, combinations = next(random_queries(seed, rows=seed % 3 == 0))
    inputs = {name: spark.createDataFrame(table) for name, table in cases[0].inputs.items()}
    places = {
        name: {
            row: (0, place)
            for row, place in frame.select("id", F.monotonically_increasing_id()).collect()
        }
        for name, frame in inputs.items()
    }
    policy = qm.policies.Mesh(**SMALL)
    index = ("hash", "amri")[seed % 2]
    with qm.run_all([case.query for case in cases], inputs, policy=policy, index=index) as results:
        for case, found, out in zip(cases, combinations, results, strict=True):
            wanted = results_of(case, found, lambda case=case: arrivals(case, places))
            assert as_multiset(out.toArrow()) == wanted, case.ours


def file_stream(spark, folder, table: pa.Table, files: list[int]):
    """A streaming DataFrame of files, a file a batch."""
    folder.mkdir(exist_ok=True)
    cuts = np.linspace(0, table.num_rows, 5).astype(int)
    for number in files:
        path = folder / f"part-{number}.parquet"
        pq.write_table(table.slice(cuts[number], cuts[number + 1] - cuts[number]), path)
        os.utime(path, (1_000_000_000 + number,) * 2)
    schema = spark.createDataFrame(table.slice(0, 0)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def test_a_stream_goes_on_from_its_checkpoint_with_one_state_for_all_queries(spark, tmp_path):
    tables, asked = streams(1), queries(*ALIKE, OTHER)
    checkpoint = str(tmp_path / "checkpoint")
    found = [Counter() for _ in asked]

    def take(query: int, rows, batch: int) -> None:
        found[query].update(as_multiset(rows.toArrow()))

    for files in ([0, 1], [2, 3]):
        inputs = {
            name: file_stream(spark, tmp_path / name, table, files)
            for name, table in tables.items()
        }
        results = qm.run_all(asked, inputs, checkpoint=checkpoint, watermark="1 hour", shards=2)
        writer = results.write_each(take).option("checkpointLocation", checkpoint)
        running = writer.trigger(availableNow=True).start()
        assert running.awaitTermination(180)
        assert running.exception() is None
        run = qm.inspect(results)
        assert len(run.batches) == 2
        assert not run.problems
    for query, rows in zip(asked, found, strict=True):
        batch = {name: spark.createDataFrame(tables[name]) for name in of(query, tables)}
        assert rows == as_multiset(qm.run(query, batch, policy="single").toArrow())
    stored = {name: state.rows for name, state in run.states.items()}
    assert set(stored) == {"a", "b", "c"}
    assert stored["a"] + stored["b"] < 2 * ROWS, "a state for each query would have more"
    told = run.explain()
    assert "join of 3 streams: a, b, c" in told
    assert "q3 by itself: a.m = c.m" in told
    assert set(run.progress["streams"]) == {
        *("a [q1, q2]", "b [q1, q2]", "a [q3]", "c [q3]"),
    }
    run.explain(html=tmp_path / "run.html")
    assert "Tuples that arrive on c [q3]" in (tmp_path / "run.html").read_text()
    with pytest.raises(UnsupportedError, match="is not saved"):
        run.mesh.save(tmp_path / "mesh.json")
    with pytest.raises(UnsupportedError, match="give the queries to run_all"):
        qm.run(run.mesh, inputs)
    with pytest.raises(qm.QueryMeshError, match="the query"):
        qm.run_all(asked[::-1], inputs, checkpoint=checkpoint)
