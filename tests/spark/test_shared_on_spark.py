import gc
import threading
from time import monotonic, sleep

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

import querymesh as qm
from equivalence import FUNCTIONS, SCHEMA, SECTORS, as_multiset, rows_of, shared_cases, table_of
from querymesh.spark.results import _let_go

SMALL = qm.policies.Mesh(sample_rows=300)


def queries():
    return [
        qm.query(sql, functions=FUNCTIONS)
        for sql in (
            "SELECT id, a FROM Src s WHERE is_even(s.a) AND s.ok AND s.s LIKE '%b%'",
            "SELECT x.id, t.region FROM Src x, Sectors t WHERE x.g = t.g AND is_even(x.a)",
            "SELECT * FROM Src WHERE short_text(s) AND ok",
        )
    ]


@pytest.fixture(scope="module")
def inputs(spark):
    rng = np.random.default_rng(0)
    return {
        "Src": spark.createDataFrame(rows_of(rng, 3000)),
        "Sectors": table_of(SECTORS, 12, rng),
    }


def of(query, inputs):
    return {r.name: inputs[r.name] for r in query.relations}


def test_a_shared_run_gives_each_query_what_a_run_of_its_own_gives(inputs):
    with qm.run_all(queries(), inputs, policy=SMALL) as results:
        assert len(results) == 3
        for query, out in zip(queries(), results, strict=True):
            alone = qm.run(query, of(query, inputs), policy=SMALL)
            assert out.columns == alone.columns
            assert out.dtypes == alone.dtypes
            assert as_multiset(out.toArrow()) == as_multiset(alone.toArrow())


def test_shared_operators_are_evaluated_once_a_tuple_in_one_pass(inputs):
    with qm.run_all(queries(), inputs, policy=SMALL) as results:
        counts = [out.count() for out in results]
        live = qm.inspect(results[0])
        assert qm.inspect(results[2]) is qm.inspect(results) is live
        assert live.counts.rows_in == 3000, "one pass for all three"
        assert live.counts.rows_out == sum(counts)
        names = [operator.name for operator in live.mesh.operators]
        assert (
            sorted(names) == ["is_even", "ok", "s LIKE '%b%'", "short_text", "t"] or len(names) == 5
        )
        visits = live.counts.by_operator()
        assert all(v.evaluations <= 3000 for v in visits.values())
    alone = 0
    for query in queries():
        out = qm.run(query, of(query, inputs), policy=SMALL, engine="fabric")
        out.count()
        left_to_spark = 3000 * len(qm.inspect(out).left_to_spark)
        alone += qm.inspect(out).counts.evaluations + left_to_spark
    assert live.counts.evaluations < 0.8 * alone


@given(case=shared_cases(most=30))
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_queries_in_one_pass_give_the_multisets_of_duckdb(spark, case):
    tables = {name: table for each in case for name, table in each.inputs.items()}
    given = {**tables, "Src": spark.createDataFrame(tables["Src"])}
    with qm.run_all([each.query for each in case], given, policy=SMALL) as results:
        for each, out in zip(case, results, strict=True):
            assert as_multiset(out.toArrow()) == each.expected()


def test_a_stream_serves_all_its_queries_in_one_pass_and_learns(spark, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    table = rows_of(np.random.default_rng(1), 4000)
    for k in range(8):
        pq.write_table(table.slice(500 * k, 500), folder / f"part-{k}.parquet")
    schema = spark.createDataFrame(SCHEMA.empty_table()).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
    both = [queries()[0], queries()[2]]
    checkpoint = str(tmp_path / "checkpoint")
    results = qm.run_all(both, {"Src": stream}, checkpoint=checkpoint, policy=SMALL)
    live = qm.inspect(results[0])

    def sink(query, batch, number):
        batch.write.mode("append").parquet(str(tmp_path / f"out-{query}"))
        if number == 4:
            assert live.wait_until_learned(30)

    writer = results.write_each(sink).option("checkpointLocation", checkpoint)
    assert writer.trigger(availableNow=True).start().awaitTermination(120)
    whole = spark.createDataFrame(table)
    for k, query in enumerate(both):
        expected = as_multiset(qm.run(query, {"Src": whole}, policy=SMALL).toArrow())
        assert as_multiset(spark.read.parquet(str(tmp_path / f"out-{k}")).toArrow()) == expected
    assert live.counts.rows_in == 4000
    assert live.view.version >= 1
    assert live.mesh.sample_rows >= 300


def test_what_cannot_be_shared_is_refused_by_name(spark, inputs):
    source = inputs["Src"]
    with pytest.raises(qm.QueryMeshError, match=r"engine 'native' .* share one pass"):
        qm.run_all(queries()[:1], {"Src": source}, engine="native")
    with pytest.raises(qm.QueryMeshError, match="given as Query, not str"):
        qm.run_all(["SELECT * FROM Src"], source)
    with pytest.raises(qm.QueryMeshError, match="there is no query to run"):
        qm.run_all([], source)
    with pytest.raises(qm.QueryMeshError, match=r"given as qm\.query"):
        qm.run("SELECT * FROM Src", source)
    with pytest.raises(qm.QueryMeshError, match="learned together by run"):
        qm.train(queries(), inputs)
    ranked = qm.policies.Mesh(training=qm.policies.Training(route_search="rank"))
    with pytest.raises(qm.OptionError, match="route search of their own"):
        qm.run_all(queries(), inputs, policy=ranked)
    with pytest.raises(qm.SchemaError, match="no input for relation 'Sectors'"):
        qm.run_all(queries(), {"Src": source})
    with (
        qm.run_all(queries()[:1], {"Src": source}, policy=SMALL) as results,
        pytest.raises(qm.QueryMeshError, match="write_each is for streams"),
    ):
        results.write_each(print)


def test_the_kept_result_is_let_go_with_the_last_of_its_frames(spark, inputs):
    kept = spark.sparkContext._jsc.getPersistentRDDs
    before = len(kept())
    first, second, _ = qm.run_all(queries(), inputs, policy=SMALL)
    assert first.count() + second.count() > 0
    assert len(kept()) == before + 1, "while a frame is there, so is the result"
    del first, second, _
    gc.collect()
    until = monotonic() + 30
    while len(kept()) > before and monotonic() < until:
        sleep(0.05)
    assert len(kept()) == before


def test_garbage_is_let_go_on_another_thread_than_one_that_may_be_talking_to_spark():
    threads = []

    class Kept:
        def unpersist(self):
            threads.append(threading.current_thread())

    _let_go(Kept())
    until = monotonic() + 10
    while not threads and monotonic() < until:
        sleep(0.01)
    assert threads
    assert threads[0] is not threading.current_thread()


def test_a_mesh_of_several_queries_can_be_read_but_not_saved(inputs, tmp_path):
    with qm.run_all(iter(queries()[:2]), inputs, policy=SMALL) as results:
        mesh = qm.inspect(results).mesh
    assert "is_even [q1, q2]" in mesh.explain()
    with pytest.raises(qm.UnsupportedError, match="not saved"):
        mesh.save(tmp_path / "mesh.json")
    with pytest.raises(qm.UnsupportedError, match="several queries in one pass"):
        qm.run(mesh, inputs)


def test_a_query_without_conditions_may_share_too(spark):
    table = rows_of(np.random.default_rng(2), 50)
    pair = [qm.query("SELECT id FROM T"), qm.query("SELECT a FROM T WHERE a > 3")]
    with qm.run_all(pair, spark.createDataFrame(table)) as (everything, some):
        assert everything.count() == 50
        assert some.count() == sum(a is not None and a > 3 for a in table["a"].to_pylist())
        assert everything.schema == spark.createDataFrame(table.select(["id"])).schema
