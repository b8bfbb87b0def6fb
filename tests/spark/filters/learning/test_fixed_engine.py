"""Learning within a budget where the engine is settled: named by the user, or by look-ups."""

import gc
import logging
from time import sleep

import pyarrow as pa
import pytest

import querymesh as qm
from equivalence import as_multiset
from querymesh.spark.filters.learning import fixed_engine, learning
from querymesh.spark.filters.learning.prepared import _same

LOOKED_UP = """SELECT e.id, n.name FROM Events e, Names n
               WHERE e.kind = n.kind AND odd_digits(e.text)"""
CONDITIONS = ["text RLIKE '7'", "kind RLIKE 'a|b'"]
PLAIN = " AND ".join(CONDITIONS)


@pytest.fixture
def events(spark):
    return made_events(spark, 4000)


def made_events(spark, rows):
    return spark.range(rows).selectExpr(
        "id", "string(id) AS text", "element_at(array('a', 'b', 'c'), 1 + int(id % 3)) AS kind"
    )


def names():
    return pa.table({"kind": ["a", "b"], "name": ["first", "second"]})


class Asked(list):
    """A function over values that remembers, on the driver, what it was called with."""

    def query(self):
        def odd_digits(text):
            self.append(text)
            return "1" in text or "3" in text

        fn = qm.predicate(odd_digits, columns=["text"], vectorised=False, name="odd_digits")
        return qm.query(LOOKED_UP, functions={"odd_digits": fn})


def no_sample(*args, **kwargs):
    raise AssertionError("this job is too small to be sampled")


def test_a_small_job_with_a_look_up_runs_as_written_and_nothing_is_called(events, monkeypatch):
    monkeypatch.setattr(learning, "bounded_sample", no_sample)
    asked = Asked()
    out = qm.run(asked.query(), {"Events": events, "Names": names()})
    run = qm.inspect(out)
    assert "too small" in run.mesh.why
    assert "runs in Python, on Arrow batches, in the order as written" in run.explain()
    assert not asked
    wanted = events.filter("kind < 'c' AND (text LIKE '%1%' OR text LIKE '%3%')")
    assert out.count() == wanted.count()


def test_queries_that_share_a_pass_are_not_sampled_either_where_they_are_small(events, monkeypatch):
    monkeypatch.setattr(learning, "bounded_sample", no_sample)
    queries = [qm.query(f"SELECT id FROM Events WHERE {each}") for each in (PLAIN, "id > 7")]
    with qm.run_all(queries, {"Events": events}) as results:
        assert "too small" in qm.inspect(results).mesh.why
        assert results[0].count() == events.filter(PLAIN).count()


def test_a_large_job_with_a_look_up_learns_once_and_says_how_often_it_called(spark, caplog):
    asked, table = Asked(), names()
    query, large = asked.query(), made_events(spark, 30_000_000)
    with caplog.at_level(logging.INFO, "querymesh"):
        first = qm.inspect(qm.run(query, {"Events": large, "Names": table}))
    calls = first.preparation.calls
    assert len(asked) == len(set(asked)) == calls >= first.preparation.sample_rows >= 256
    assert f"with {calls:,} calls of Python functions" in first.explain()
    told = [record.message for record in caplog.records if "learned from" in record.message]
    assert len(told) == 1
    assert f"({calls:,} calls of Python functions)" in told[0]
    second = qm.inspect(qm.run(query, {"Events": large, "Names": table}))
    assert second.preparation.remembered
    assert len(asked) == calls
    assert second.mesh.routes == first.mesh.routes
    assert "nothing was spent this time" in second.explain()


def test_another_table_to_look_up_in_is_learned_anew(spark):
    asked = Asked()
    query, large = asked.query(), made_events(spark, 30_000_000)
    for table in (names(), names()):
        run = qm.inspect(qm.run(query, {"Events": large, "Names": table}))
        assert not run.preparation.remembered


def test_a_table_that_is_gone_is_not_taken_for_another_at_its_place():
    table = names()
    key = _same(table)
    assert key == _same(table)
    assert key != _same(names())
    del table
    gc.collect()
    assert key != _same(names())


@pytest.mark.parametrize("engine", ["native", "fabric"])
def test_a_named_engine_learns_once_and_runs_on_that_engine(events, engine, caplog):
    def run():
        return events.transform(qm.where(*CONDITIONS, engine=engine))

    with caplog.at_level(logging.INFO, "querymesh"):
        outs = [run(), run()]
    runs = [qm.inspect(out) for out in outs]
    assert [each.engine for each in runs] == [engine, engine]
    assert [each.preparation.remembered for each in runs] == [False, True]
    assert runs[0].mesh.is_learned
    assert len([r for r in caplog.records if "learned from" in r.message]) == 1
    expected = as_multiset(events.filter(PLAIN).toArrow())
    for out in outs:
        assert as_multiset(out.toArrow()) == expected
    other = qm.inspect(events.transform(qm.where(*CONDITIONS)))
    assert not other.mesh.is_learned, "what was learned for an engine is that engine's"


def test_a_named_engine_calls_a_slow_function_no_more_often_than_its_limit_pays_for(events):
    asked = []

    def slow(text):
        asked.append(text)
        sleep(0.004)
        return "7" in text

    fn = qm.predicate(slow, columns=["text"], vectorised=False, name="slow")
    run = qm.inspect(events.transform(qm.where(fn, "kind RLIKE 'a|b'", engine="fabric")))
    assert len(asked) == len(set(asked)) == run.preparation.calls
    assert 24 <= len(asked) <= fixed_engine.NAMED_BUDGET_S / 0.004
    assert f"{len(asked)} calls of Python functions" in run.explain()


@pytest.mark.parametrize("engine", ["auto", "native", "fabric"])
@pytest.mark.parametrize("table", [False, True], ids=["frame", "table"])
def test_a_stream_that_is_given_a_sample_starts_on_what_it_tells(
    spark, events, tmp_path, engine, table
):
    events.write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(events.schema).parquet(str(tmp_path / "in"))
    sample = events.toArrow() if table else events
    out = stream.transform(qm.where(*CONDITIONS, engine=engine, sample=sample))
    run = qm.inspect(out)
    assert run.mesh.is_learned
    assert run.preparation.sample_rows >= 500
    writer = out.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    assert writer.trigger(availableNow=True).start().awaitTermination(120)
    found = spark.read.parquet(str(tmp_path / "out"))
    assert as_multiset(found.toArrow()) == as_multiset(events.filter(PLAIN).toArrow())


def test_a_plan_that_must_run_whole_before_it_gives_a_row_is_not_sampled(events):
    grouped = events.groupBy("kind").count().selectExpr("kind", "string(count) AS n")
    conditions = ["n RLIKE '1'", "kind RLIKE 'a|b'"]
    out = grouped.transform(qm.where(*conditions, engine="fabric"))
    assert "it runs as written" in qm.inspect(out).mesh.why
    assert out.count() == grouped.filter(" AND ".join(conditions)).count()


def test_large_tables_are_not_searched_for_a_job_that_cannot_pay_for_it(spark, monkeypatch):
    monkeypatch.setattr(fixed_engine, "make_tables", no_sample)
    monkeypatch.setattr(fixed_engine, "BUILD_US", 1e9)
    asked = Asked()
    large = made_events(spark, 30_000_000)
    run = qm.inspect(qm.run(asked.query(), {"Events": large, "Names": names()}))
    assert "its look-up tables have 2 rows" in run.mesh.why
    assert not asked


def test_who_asks_for_an_accuracy_is_told_of_all_calls(events):
    asked = Asked()
    policy = qm.policies.Mesh(sample_rows=100, accuracy=0.999)
    run = qm.inspect(qm.run(asked.query(), {"Events": events, "Names": names()}, policy=policy))
    assert run.preparation.calls == len(asked) >= 100
