"""Learning that pays for itself: when a filter is sampled, how often functions are called."""

import logging
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql.functions import udf

import querymesh as qm
from querymesh.spark.filters import filter_job
from querymesh.spark.filters.learning import learning
from querymesh.spark.schema import arrow_schema


@pytest.fixture
def rows(spark):
    return spark.range(4000).selectExpr(
        "id", "string(id) AS text", "element_at(array('a', 'b', 'c'), 1 + int(id % 3)) AS kind"
    )


@pytest.fixture(autouse=True)
def usual_prices(monkeypatch):
    """Prices are corrected while tests run, by whatever else the machine does: what is decided here
    goes by those of a usual one."""
    known = filter_job.cost_table
    monkeypatch.setattr(
        filter_job, "cost_table", lambda session: replace(known(session), slower=0.8)
    )


def no_sample(*args, **kwargs):
    raise AssertionError("this job is too small to be sampled")


def test_a_small_job_is_not_sampled_at_all(rows, monkeypatch):
    monkeypatch.setattr(learning, "bounded_sample", no_sample)
    out = rows.transform(qm.where("text RLIKE '7'", "text RLIKE '3'"))
    run = qm.inspect(out)
    assert "too small" in run.mesh.why
    assert run.preparation.decision is None
    assert run.engine == "native"
    assert out.count() == rows.filter("text RLIKE '7' AND text RLIKE '3'").count()


def test_a_large_job_of_cheap_conditions_is_not_sampled_either(spark, monkeypatch):
    monkeypatch.setattr(learning, "bounded_sample", no_sample)
    big = spark.range(50_000_000).selectExpr("id", "id % 7 AS b", "string(id) AS s")
    run = qm.inspect(big.transform(qm.where("id > 3", "b = 2 OR b < id", "length(s) > 2")))
    assert run.preparation is None or run.preparation.decision is None


def test_regular_expressions_on_many_rows_are_worth_a_sample(spark):
    big = spark.range(30_000_000).selectExpr("id", "concat('line ', id, ' of a log') AS s")
    out = big.transform(qm.where("s RLIKE '(7|8)+ of'", "s RLIKE '1[^0]*2'"))
    preparation = qm.inspect(out).preparation
    assert preparation.decision is not None
    assert preparation.sample_rows >= 500
    assert set(preparation.decision.candidates) >= {"plain", "native", "fabric"}


def test_a_second_call_with_the_same_plan_and_conditions_reuses_what_was_learned(rows):
    policy = qm.policies.Mesh(sample_rows=300)

    def run():
        return qm.inspect(
            rows.transform(qm.where("text RLIKE '7'", "kind RLIKE 'a'", policy=policy))
        )

    first, second = run(), run()
    assert not first.preparation.remembered
    assert second.preparation.remembered
    assert second.mesh.routes == first.mesh.routes
    assert "nothing was spent this time" in second.explain()


def test_another_condition_or_function_is_learned_anew(rows):
    policy = qm.policies.Mesh(sample_rows=300)
    for digit in ("7", "8"):
        out = rows.transform(qm.where(f"text RLIKE '{digit}'", "kind RLIKE 'b'", policy=policy))
        assert not qm.inspect(out).preparation.remembered
    for digit in (7, 8):
        fn = qm.predicate(
            lambda t, d=digit: str(d) in t, columns=["text"], vectorised=False, name="f"
        )
        out = rows.transform(qm.where(fn, "kind RLIKE 'b'", policy=policy))
        assert not qm.inspect(out).preparation.remembered


def test_the_same_udf_is_known_again_though_it_is_unwrapped_anew(rows):
    policy = qm.policies.Mesh(sample_rows=300)
    sevens = udf(lambda t: "7" in t, "boolean")
    runs = [
        qm.inspect(rows.transform(qm.where(sevens("text"), "kind RLIKE 'c'", policy=policy)))
        for _ in range(2)
    ]
    assert [run.preparation.remembered for run in runs] == [False, True]


def test_functions_are_called_once_a_sampled_row_and_explain_says_how_often(rows):
    asked = []

    def slow(text):
        asked.append(text)
        return "7" in text

    fn = qm.predicate(slow, columns=["text"], vectorised=False, name="slow")
    policy = qm.policies.Mesh(sample_rows=200)
    out = rows.transform(qm.where(fn, "kind RLIKE 'a|b'", policy=policy))
    calls = qm.inspect(out).preparation.calls
    assert len(asked) == len(set(asked)) == calls >= 200, "more rows only where it was in doubt"
    assert f"{calls} calls of Python functions" in qm.inspect(out).explain()


def test_one_line_is_logged_for_a_training(rows, caplog):
    with caplog.at_level(logging.INFO, logger="querymesh"):
        rows.transform(
            qm.where("text RLIKE '41'", "kind RLIKE 'a'", policy=qm.policies.Mesh(sample_rows=250))
        )
    told = [record.message for record in caplog.records if "learned from" in record.message]
    assert len(told) == 1
    assert "250 rows" in told[0]


def test_a_plan_that_must_run_whole_before_it_gives_a_row_is_not_sampled(rows):
    grouped = rows.groupBy("kind").count().selectExpr("kind", "string(count) AS n", "count AS id")
    out = grouped.transform(
        qm.where("n RLIKE '1'", "kind RLIKE 'a|b'", policy=qm.policies.Mesh(sample_rows=10))
    )
    assert qm.inspect(out).preparation.decision is None
    assert out.count() == grouped.filter("n RLIKE '1' AND kind RLIKE 'a|b'").count()


def test_opaque_conditions_tell_no_kinds_apart(rows):
    out = rows.transform(
        qm.where(
            "split(text, '1')[0] = text",
            "sha2(text, 256) < 'c'",
            "md5(text) < 'c'",
            policy=qm.policies.Mesh(sample_rows=1000),
        )
    )
    assert not any(entry.name.startswith("__") for entry in qm.inspect(out).mesh.left_out)
    expected = "split(text, '1')[0] = text AND sha2(text, 256) < 'c' AND md5(text) < 'c'"
    assert out.count() == rows.filter(expected).count()


def test_a_sample_that_is_given_is_learned_from(rows):
    fn = qm.predicate(lambda t: pc.match_substring(t, "7"), columns=["text"], name="seven")
    sample = pa.table({"id": [1, 2], "text": ["7", "8"], "kind": ["a", "b"]})
    out = rows.transform(qm.where(fn, "kind RLIKE 'a'", sample=sample))
    assert qm.inspect(out).preparation.sample_rows == 2
    assert out.count() == rows.filter("text LIKE '%7%' AND kind = 'a'").count()


@pytest.fixture(scope="module")
def stored_texts(spark, tmp_path_factory):
    """Texts that pack well, so that their files say little of what a regular expression costs."""
    folder = str(tmp_path_factory.mktemp("learning") / "texts")
    spark.range(0, 1_000_000, 1, 4).selectExpr(
        "id", "concat(repeat('qwertyuiop', 12), IF(id % 1000 = 0, 'rare', 'often'), id % 50) AS s"
    ).write.parquet(folder)
    return spark.read.parquet(folder)


def test_a_second_of_regular_expressions_is_learned_by_a_quick_look(stored_texts, monkeypatch):
    monkeypatch.setattr(learning, "bounded_sample", no_sample)
    conditions = ["s RLIKE '[o]ften|[r]are'", "s RLIKE '[4]|[r]'", "s RLIKE '[r]are'"]
    out = stored_texts.transform(qm.where(*conditions))
    run = qm.inspect(out)
    assert run.preparation.sample_rows >= 500
    assert run.mesh.single[0] == 3, "the rare one comes first"
    assert out.count() == stored_texts.filter(" AND ".join(conditions)).count()


def test_where_the_order_is_good_already_a_glimpse_is_enough(stored_texts, monkeypatch):
    monkeypatch.setattr(learning, "profile_within", no_sample)
    out = stored_texts.transform(qm.where("s RLIKE '[r]are'", "s RLIKE '[o]ften'", "s RLIKE '4'"))
    assert "as written a row takes about" in qm.inspect(out).mesh.why


def test_rows_of_a_megabyte_are_sampled_by_the_bytes(spark, tmp_path):
    rng, folder = np.random.default_rng(0), tmp_path / "large"
    folder.mkdir()
    for part in range(2):
        texts = [rng.bytes(410_000).hex() for _ in range(30)]
        pq.write_table(pa.table({"id": range(30), "s": texts}), folder / f"{part}.parquet")
    large = spark.read.parquet(str(folder))
    conditions = ["s RLIKE '[a]bcd'", "s RLIKE '[0]000'", "s RLIKE '[f]edcb'"]
    expected = large.filter(" AND ".join(conditions)).count()
    for policy in ("mesh", qm.policies.Mesh(sample_rows=2000)):
        out = large.transform(qm.where(*conditions, policy=policy))
        assert qm.inspect(out).preparation.sample_rows <= 60
        assert out.count() == expected
    look = learning.quick_look(
        (found := learning.plan_statistics(large)).plan, found.sources[0]
    ).rows(4000, arrow_schema(large), ["s"])
    assert look.table.nbytes < 40 << 20


def test_a_sample_that_is_given_and_does_not_fit_is_the_users_to_mend(rows):
    with pytest.raises(Exception, match="kind"):
        rows.transform(
            qm.where("text RLIKE '7'", "kind RLIKE 'a'", sample=rows.select("id", "text"))
        )
