from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

import querymesh as qm
from equivalence import FUNCTIONS, SCHEMA, as_multiset, rows_of
from querymesh.classify.tree import Leaf, Missing, Split, Threshold


@pytest.fixture(scope="module")
def people(spark):
    return spark.createDataFrame(rows_of(np.random.default_rng(1), 3000)).repartition(2).cache()


def rows(df):
    return as_multiset(df.toArrow())


@qm.predicate(columns=["a"])
def big(a):
    return pc.greater(a, 3)


def test_where_keeps_what_filter_keeps_with_schema_and_order(spark, people):
    out = people.transform(qm.where(big, "s LIKE '%b%'", "g <> 'mine' AND ok"))
    plain = people.filter("a > 3 AND s LIKE '%b%' AND g <> 'mine' AND ok")
    assert out.schema == people.schema
    assert rows(out) == rows(plain)
    assert [r.id for r in out.collect()] == [r.id for r in plain.collect()]
    live = qm.inspect(out)
    assert live.engine == "fabric"
    assert [op.name for op in live.mesh.operators] == ["big", "s LIKE '%b%'"]
    assert live.left_to_spark == ("g <> 'mine'", "ok"), "comparisons are Spark's to push down"


def test_sql_only_conditions_run_natively_with_no_python(people):
    out = people.transform(qm.where("a > 3", "s LIKE '%b%'"))
    assert qm.inspect(out).engine == "native"
    plan = out._jdf.queryExecution().executedPlan().toString()
    assert "MapInArrow" not in plan
    assert "Python" not in plan


def test_a_filter_is_sent_only_the_columns_it_asks_about(people):
    out = people.transform(qm.where(big, "ok", engine="fabric"))
    plan = out._jdf.queryExecution().executedPlan().toString()
    assert "ArrowEvalPython" in plan
    assert "MapInArrow" not in plan
    assert rows(out) == rows(people.filter("a > 3 AND ok"))
    only = people.select("a", "ok").transform(qm.where(big, "ok", engine="fabric"))
    assert "ArrowEvalPython" in only._jdf.queryExecution().executedPlan().toString()


def test_a_filter_stays_behind_the_filter_it_was_written_after(spark, people):
    met = spark.sparkContext.accumulator(0)

    def counts(a):
        met.add(len(a))
        return pc.greater(a, 5)

    counting = qm.predicate(counts, columns=["a"], name="counting")
    guarded = people.transform(qm.where(big, engine="fabric")).transform(
        qm.where(counting, engine="fabric", sample=rows_of(np.random.default_rng(0), 5))
    )
    in_training = met.value
    assert rows(guarded) == rows(people.filter("a > 5"))
    assert met.value - in_training == people.filter("a > 3").count()


def test_a_sample_that_does_not_fit_is_named(people):
    with pytest.raises(qm.SchemaError, match="no column 'id': Known: a, okk"):
        people.transform(qm.where("ok", "a > 1", sample=pa.table({"a": [1], "okk": [True]})))


def test_dictionary_encoded_samples_train(people):
    sample = rows_of(np.random.default_rng(0), 300)
    sample = sample.set_column(4, "g", sample["g"].dictionary_encode())
    mesh = qm.train(
        qm.query("SELECT * FROM P WHERE is_even(a) AND ok", functions=FUNCTIONS), sample
    )
    assert mesh.sample_rows == 300


def test_metrics_of_a_run_add_up(people):
    out = people.transform(qm.where(big, "ok", "s LIKE '%b%'", engine="fabric"))
    count = out.count()
    metrics = qm.inspect(out).counts
    met = people.filter("ok").count()
    assert qm.inspect(out).left_to_spark == ("ok",)
    assert metrics.rows_in == met
    assert metrics.rows_out == count
    assert sum(metrics.leaf_rows.values()) == met
    assert metrics.evaluations >= met
    assert metrics.total_seconds > 0


def test_metrics_of_a_derived_frame_say_what_to_keep(people):
    with pytest.raises(qm.QueryMeshError, match="keep that DataFrame"):
        qm.inspect(people.filter("a > 3"))


def test_a_mesh_saved_and_loaded_runs_the_same(people, tmp_path):
    query = qm.query("SELECT id, a FROM P WHERE is_even(a) AND s LIKE '%b%'", functions=FUNCTIONS)
    mesh = qm.train(query, {"P": people})
    mesh.save(tmp_path / "mesh.json")
    again = qm.load(tmp_path / "mesh.json", functions=FUNCTIONS)
    assert rows(qm.run(again, {"P": people})) == rows(qm.run(mesh, {"P": people}))


def test_a_mesh_for_other_operators_is_refused(people):
    mesh = qm.train(qm.query("SELECT * FROM P WHERE a > 1 AND ok"), people)
    other = qm.query("SELECT * FROM P WHERE a > 2 AND ok")
    with pytest.raises(qm.MeshFileError, match="train it again"):
        qm.run(replace(mesh, query=other), people)
    elsewhere = replace(
        mesh, tree=Split(Missing("gg"), Leaf(0), Leaf(0)), leaves=mesh.leaves[:1] * 2
    )
    with pytest.raises(qm.MeshFileError, match="by 'gg', which P does not have: did you mean 'g'"):
        qm.run(elsewhere, people)
    senseless = replace(
        mesh, tree=Split(Threshold("g", 1.0, False), Leaf(0), Leaf(0)), leaves=mesh.leaves[:1] * 2
    )
    with pytest.raises(qm.MeshFileError, match="no answer for a column of type string"):
        qm.run(senseless, people)
    unguarded = replace(
        mesh, operators=(mesh.operators[0], replace(mesh.operators[1], after=frozenset({1})))
    )
    with pytest.raises(qm.MeshFileError, match=r"ok after the operators \[1\], but"):
        qm.run(unguarded, people)


def test_policy_single_runs_one_route_of_a_trained_mesh(people):
    query = qm.query("SELECT * FROM P WHERE is_even(a) AND ok", functions=FUNCTIONS)
    mesh = qm.train(query, people)
    out = qm.run(mesh, people, policy="single")
    assert qm.inspect(out).mesh.tree == Leaf(0)
    assert rows(out) == rows(people.filter("a % 2 = 0 AND ok"))


def test_training_from_an_arrow_table_and_from_a_frame_agree_on_the_operators(people):
    query = qm.query("SELECT * FROM P WHERE a > 1 AND ok")
    from_frame = qm.train(query, people, policy=qm.policies.Mesh(seed=3))
    from_table = qm.train(
        query, rows_of(np.random.default_rng(1), 3000), policy=qm.policies.Mesh(seed=3)
    )
    assert [op.name for op in from_frame.operators] == [op.name for op in from_table.operators]
    for one, other in zip(from_frame.operators, from_table.operators, strict=True):
        assert one.pass_rate == pytest.approx(other.pass_rate, abs=0.08)


@pytest.mark.parametrize("engine", ["native", "fabric", "auto"])
def test_an_empty_frame_gives_an_empty_result(spark, engine):
    empty = spark.createDataFrame(SCHEMA.empty_table())
    out = empty.transform(qm.where("a > 3", "ok", engine=engine))
    assert out.count() == 0
    assert out.schema == empty.schema


def test_zero_and_one_conditions_are_fine(people):
    assert people.transform(qm.where()).count() == 3000
    alone = people.transform(qm.where(big))
    assert qm.inspect(alone).mesh.sample_rows == 0, "one order needs no sample"
    assert rows(alone) == rows(people.filter("a > 3"))
    assert rows(people.transform(qm.where("a > 3"))) == rows(people.filter("a > 3"))


def test_columns_of_types_without_tests_travel_unharmed(spark):
    df = spark.range(20).select(
        "id",
        F.array("id").alias("list"),
        F.struct("id").alias("struct"),
        F.create_map(F.lit("k"), "id").alias("map"),
        F.current_timestamp().alias("ts"),
        F.current_date().alias("day"),
        F.col("id").cast("decimal(20,4)").alias("money"),
        F.encode(F.col("id").cast("string"), "utf-8").alias("raw"),
    )
    keep = qm.predicate(lambda id: pc.greater(id, 5), columns=["id"], name="keep")
    out = df.transform(qm.where(keep, "id < 15", "money >= 7.5"))
    assert out.schema == df.schema
    assert sorted(r.id for r in out.collect()) == list(range(8, 15))
    assert out.collect()[0].map == {"k": out.collect()[0].id}


def test_wrong_inputs_are_named(people):
    query = qm.query("SELECT * FROM Stock s, Sector t WHERE s.g = t.g")
    with pytest.raises(qm.SchemaError, match="give a dict with a DataFrame for each"):
        qm.run(query, people)
    with pytest.raises(qm.SchemaError, match="no input for relation 'Sector'"):
        qm.run(query, {"Stock": people})
    with pytest.raises(qm.SchemaError, match="has no relation 'Sectr'"):
        qm.run(query, {"Stock": people, "Sector": people, "Sectr": people})
    with pytest.raises(qm.SchemaError, match="must be a Spark DataFrame"):
        qm.run(qm.query("SELECT * FROM P WHERE a > 1"), rows_of(np.random.default_rng(0), 5))


def test_unknown_policy_engine_and_error_mode_list_the_known_ones(people):
    with pytest.raises(qm.QueryMeshError, match="did you mean 'mesh'"):
        people.transform(qm.where("a > 1", policy="mash"))
    with pytest.raises(qm.QueryMeshError, match="auto, fabric, native"):
        people.transform(qm.where("a > 1", engine="gpu"))
    with pytest.raises(qm.QueryMeshError, match="drop, raise"):
        people.transform(qm.where("a > 1", on_error="ignore"))


def test_native_names_what_keeps_it_from_running(people):
    with pytest.raises(qm.UnsupportedError, match="SQL filters only, and big is a Python function"):
        people.transform(qm.where(big, "ok", engine="native"))
    joined = qm.query("SELECT p.id FROM P p, Q q WHERE p.a = q.a AND p.ok")
    with pytest.raises(qm.UnsupportedError, match="SQL filters only, and q is a look-up"):
        qm.run(joined, {"P": people, "Q": people}, engine="native")


def test_windows_by_a_column_that_is_no_time_are_refused(people):
    query = qm.query(
        "SELECT * FROM A [RANGE 60 SECONDS], B [RANGE 1 HOUR] WHERE A.a = B.a", time="id"
    )
    assert [r.window.size for r in query.relations] == [60_000_000, 3_600_000_000]
    with pytest.raises(qm.SchemaError, match=r"A\.id is BIGINT: cast it to TIMESTAMP"):
        qm.run(query, {"A": people, "B": people})


def raises_on_seven(a):
    if pc.any(pc.equal(a, 7)).as_py():
        raise ValueError("seven is bad luck")
    return pc.is_valid(a)


def test_an_error_in_a_predicate_reaches_the_user_with_name_row_and_traceback(people):
    unlucky = qm.predicate(raises_on_seven, columns=["a"], name="unlucky")
    learning = qm.policies.Mesh(sample_rows=2000)
    with pytest.raises(qm.PredicateError, match=r"(?s)unlucky.*7.*seven is bad luck"):
        people.transform(qm.where(unlucky, "ok", policy=learning))
    lucky_sample = rows_of(np.random.default_rng(2), 200).filter(pc.field("a") != 7)
    out = people.transform(qm.where(unlucky, "ok", sample=lucky_sample))
    with pytest.raises(Exception, match=r"(?s)unlucky.*seven is bad luck"):
        out.count()


def test_errors_can_be_counted_and_dropped(people):
    unlucky = qm.predicate(raises_on_seven, columns=["a"], name="unlucky")
    out = people.transform(qm.where(unlucky, "ok", on_error="drop"))
    assert rows(out) == rows(people.filter("a IS NOT NULL AND a <> 7 AND ok"))
    live = qm.inspect(out).counts
    sevens = people.filter("a = 7").count()
    assert 0 < live.errors_dropped <= sevens


def test_functions_of_the_main_program_reach_the_tasks(people):
    threshold = 5
    local = qm.predicate(lambda a: pc.greater(a, threshold), columns=["a"], name="local")
    assert rows(people.transform(qm.where(local))) == rows(people.filter("a > 5"))


def test_look_ups_with_several_matches_and_two_column_keys(spark, people):
    lookup = pa.table(
        {"g": ["tech", "tech", "farm"], "a": [5, 5, 6], "note": ["one", "two", "three"]}
    )
    query = qm.query("SELECT p.id, n.note FROM P p JOIN N n ON p.g = n.g AND p.a = n.a WHERE p.ok")
    expected = people.alias("p").join(spark.createDataFrame(lookup).alias("n"), ["g", "a"])
    assert rows(qm.run(query, {"P": people, "N": lookup})) == rows(
        expected.filter("ok").select("id", "note")
    )


def test_auto_is_no_policy_and_those_there_are_are_named(people):
    query = qm.query("SELECT id FROM P WHERE ok AND a > 3")
    with pytest.raises(qm.OptionError, match="unknown policy 'auto'") as told:
        qm.run(query, {"P": people}, policy="auto")
    assert isinstance(told.value, ValueError)
    assert str(told.value).endswith("Known: cbr, chart, eddy, mesh, rate, single")


@pytest.mark.parametrize(
    "given",
    [
        {"goal": qm.policies.MostBy(60)},
        {"weights": (0.4, 0.6)},
        {"charting": qm.policies.Charting()},
        {"routing": qm.policies.Routing()},
    ],
)
def test_the_default_is_the_mesh_and_takes_no_option_of_another_policy(people, given):
    query = qm.query("SELECT id FROM P WHERE ok AND a > 3")
    out = qm.run(query, {"P": people})
    assert rows(out) == rows(people.filter("ok AND a > 3").select("id"))
    assert qm.inspect(out).policy == "mesh"
    (name,) = given
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        qm.run(query, {"P": people}, policy=qm.policies.Mesh(**given))
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        qm.run(query, {"P": people}, **given)
