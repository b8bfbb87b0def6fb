"""Conditions as people have them: the same rows as `df.filter` gives, whatever form they have."""

import datetime as dt
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F
from pyspark.sql.functions import arrow_udf, pandas_udf, udf

import querymesh as qm


@pytest.fixture(scope="module")
def events(spark, tmp_path_factory):
    """Nested events, such as people have them, with NULLs in every place."""
    rows = [
        {
            "id": i,
            "kind": [None, "Push", "Watch", "Fork"][i % 4],
            "actor": None if i % 11 == 0 else {"id": i % 50, "login": f"user{i % 50}"},
            "payload": {
                "size": i % 7,
                "commits": None
                if i % 5 == 0
                else [{"sha": f"{i:04x}", "ok": i % 2 == 0}] * (i % 3),
                "tags": ["a", "b", f"t{i % 6}"][: i % 4],
            },
            "attributes": {"k": str(i % 9)},
            "body": f'{{"n": {i}, "who": "u{i % 13}"}}',
            "price": None if i % 17 == 0 else Decimal(i * 1000003) / 100,
            "at": dt.datetime(2024, 1, 1) + dt.timedelta(minutes=7 * i),
            "day": dt.date(2024, 1, 1) + dt.timedelta(days=i % 60),
            "text": None if i % 19 == 0 else f"line {i} of the log",
            "number": str(i) if i % 3 else "none",
        }
        for i in range(400)
    ]
    schema = (
        "id BIGINT, kind STRING, actor STRUCT<id: INT, login: STRING>, "
        "payload STRUCT<size: INT, commits: ARRAY<STRUCT<sha: STRING, ok: BOOLEAN>>, "
        "tags: ARRAY<STRING>>, attributes MAP<STRING, STRING>, body STRING, "
        "price DECIMAL(20,2), at TIMESTAMP, day DATE, text STRING, number STRING"
    )
    folder = str(tmp_path_factory.mktemp("events") / "events")
    spark.createDataFrame(rows, schema).repartition(2).write.parquet(folder)
    return spark.read.parquet(folder)


def ids(frame):
    return sorted(row.id for row in frame.select("id").collect())


def agrees(frame, *conditions, **options):
    """Whether `where` keeps the rows that `filter` keeps, and the run."""
    plain = frame
    for condition in conditions:
        plain = plain.filter(condition)
    out = frame.transform(qm.where(*conditions, **options))
    assert out.schema == frame.schema
    assert ids(out) == ids(plain)
    return qm.inspect(out)


def names(run):
    return [operator.name for operator in run.mesh.operators]


TEXTS = [
    "actor.login LIKE 'user1%'",
    "payload.size > 3 AND actor.id % 2 = 0",
    "payload.commits[0].ok",
    "size(payload.tags) > 1 AND payload.tags[1] = 'b'",
    "exists(payload.tags, t -> t LIKE 't%')",
    "filter(payload.tags, t -> t > 'a')[0] = 'b'",
    "aggregate(payload.tags, 0, (n, t) -> n + length(t)) > 2",
    "array_contains(payload.tags, 't3')",
    "attributes['k'] = '4'",
    "map_contains_key(attributes, 'k') AND kind IS NOT NULL",
    "get_json_object(body, '$.n') > 200",
    "from_json(body, 'n INT, who STRING').who = 'u5'",
    "CAST(number AS INT) IS NOT NULL OR number = 'none'",
    "try_cast(number AS INT) > 100",
    "at > TIMESTAMP '2024-01-01 12:00:00'",
    "at + INTERVAL 2 HOURS < TIMESTAMP '2024-01-02 00:00:00'",
    "CAST('2024-01-02 03:00:00' AS TIMESTAMP) < at",
    "date_trunc('day', at) = TIMESTAMP '2024-01-01'",
    "day BETWEEN DATE '2024-01-05' AND date_add(DATE '2024-01-05', 20)",
    "date_format(at, 'HH') = '11'",
    "price > 1000000.005",
    "CAST(price AS DECIMAL(12,1)) * 2 > 500000.5",
    "id > 99.5",
    "text RLIKE '[13579] of' AND text IS NOT NULL",
    "regexp_extract(text, 'line (\\\\d+)', 1) > '3'",
    "split(text, ' ')[1] = '42' OR text IS NULL",
    "kind IN ('Push', 'Fork') AND NOT (payload.size <=> 3)",
    "coalesce(kind, 'none') || '!' = 'none!'",
    "CASE WHEN kind = 'Push' THEN payload.size ELSE id END > 5",
    "element_at(payload.tags, -1) = 'b' OR size(payload.tags) = 0",
    "struct(id, kind) IN (struct(1L, 'Push'), struct(2L, 'Watch'))",
    "sha2(text, 256) < 'a'",
    "kind ILIKE 'p%'",
    "1 = 1",
    "CAST(NULL AS BOOLEAN)",
    "false",
]


@pytest.mark.parametrize("text", TEXTS)
def test_sql_text_of_any_kind_means_what_it_means_to_spark(events, text):
    if text == "payload.commits[0].ok":
        # Raises in plain Spark on an empty array: a guard comes before it.
        agrees(events, "size(payload.commits) > 0", text)
    elif "CAST(number AS INT) IS" in text:
        agrees(events, "number <> 'none'", text)
    elif "payload.tags[1]" in text or "filter(payload.tags" in text or "element_at" in text:
        agrees(events, "size(payload.tags) > 1", text)
    elif "split(" in text:
        agrees(events, "text IS NOT NULL", text)
    else:
        agrees(events, text)
        agrees(events, text, "text LIKE '%2%'", F.col("payload.size") < 6)


def is_odd(n):
    return n % 2 == 1


def first_letters(text):
    return None if text is None else text[:6]


def is_small(n: pd.Series) -> pd.Series:
    return n < 5


def is_large(n: pa.Array) -> pa.Array:
    return pc.greater(n, 20)


def odd(*columns):
    """PySpark asks for a session when a UDF is made."""
    return udf(is_odd, "boolean")(*columns)


def test_columns_are_taken_apart_at_their_ands(events):
    condition = (F.col("payload.size") > 2) & F.col("text").rlike("[02468] of") & odd("id")
    run = agrees(events, condition)
    assert run.left_to_spark == ("payload.size > 2",)
    assert names(run) == [
        "text RLIKE '[02468] of'",
        "is_odd",
    ]


def test_an_or_of_a_udf_and_a_comparison_stays_one_condition(events):
    run = agrees(events, odd("id") | (F.col("id") < 50))
    assert len(run.mesh.operators) == 1


def test_udfs_of_every_kind_are_operators_of_their_own(events):
    run = agrees(
        events,
        odd("id"),
        pandas_udf(is_small, "boolean")("payload.size")
        & arrow_udf(is_large, "boolean")(F.col("id") + 1),
    )
    assert names(run) == ["is_odd", "is_small", "is_large"]
    assert run.engine == "fabric"


def half(n):
    return None if n is None else n / 2


def test_a_udf_within_a_larger_expression_makes_it_a_python_operator(spark, events):
    letters, halved = udf(first_letters, "string"), udf(half, "double")
    for condition in (
        letters("text") == "line 1",
        ~odd("id"),
        odd("id") | (F.col("kind") == "Push"),
        halved("id") > halved(F.col("payload.size") + 1),
        (halved("id") + F.col("payload.size") > 40) & odd("id"),
        halved(halved("id")).between(3, 30.5),
        F.coalesce(halved("actor.id"), F.lit(3.0)) > 2,
    ):
        run = agrees(events, condition, "text LIKE '%1%'")
        assert run.engine == "fabric", condition
    spark.udf.register("registered_half", half, "double")
    run = agrees(events, "registered_half(id) BETWEEN 20 AND 90 AND NOT registered_half(id) = 30.5")
    assert len(run.mesh.operators) == 2
    one, other = udf(lambda n: n % 3, "bigint"), udf(lambda n: n % 4, "bigint")
    agrees(events, one("id") == other("id"), odd("id"))
    agrees(events, (F.col("kind") != "half(id)") & (halved("id") > 9), odd("id"))
    agrees(events, (F.col("kind") == "half(id)") | (halved("id") > 9), odd("id"))
    kept = udf(lambda n: [n], "array<bigint>")("id")
    agrees(events, F.exists(kept, lambda n: n > 30), odd("id"))


def test_registered_functions_are_found_by_name(spark, events):
    spark.udf.register("registered_odd", is_odd, "boolean")
    run = agrees(events, "registered_odd(id) AND text LIKE '%1%'")
    assert "registered_odd" in names(run)


def test_two_uses_of_one_udf_are_told_apart(events):
    run = agrees(events, odd("id"), odd("payload.size"))
    assert names(run) == ["is_odd", "is_odd_2"]


def test_a_predicate_may_read_a_field_of_a_struct(events):
    big = qm.predicate(lambda n: pc.greater(n, 3), columns=["payload.size"], name="big")
    out = events.transform(qm.where(big, "kind IS NOT NULL"))
    assert ids(out) == ids(events.filter("payload.size > 3 AND kind IS NOT NULL"))


def test_a_broadcast_and_a_large_closure_reach_the_tasks(spark, events):
    wanted = spark.sparkContext.broadcast({3, 5, 8})
    table = dict.fromkeys(range(40000), "x" * 40)
    known = udf(lambda n: n % 10 in wanted.value and n in table, "boolean")
    assert ids(events.transform(qm.where(known("id"), "text LIKE '%1%'"))) == ids(
        events.filter("id % 10 IN (3, 5, 8) AND text LIKE '%1%'")
    )
    learning = qm.policies.Mesh(sample_rows=200)
    out = events.transform(qm.where(known("id"), odd("id"), policy=learning))
    assert ids(out) == ids(events.filter("id % 10 IN (3, 5) AND id % 2 = 1"))


def test_what_is_not_deterministic_is_refused_with_the_reason(events):
    with pytest.raises(qm.UnsupportedError, match="not deterministic"):
        events.transform(qm.where("rand() > 0.5"))
    with pytest.raises(qm.UnsupportedError, match="not deterministic"):
        events.transform(qm.where("id > 3", F.rand() > 0.5))
    unsteady = udf(is_odd, "boolean").asNondeterministic()
    with pytest.raises(qm.UnsupportedError, match="not deterministic"):
        events.transform(qm.where("id > 3", unsteady("id")))


def test_a_subquery_is_refused_with_the_remedy(events):
    with pytest.raises(qm.UnsupportedError, match="look-up table"):
        events.transform(qm.where("id IN (SELECT 1)"))


def test_wrong_names_are_told_with_the_nearest(events):
    with pytest.raises(qm.SchemaError, match="did you mean 'kind'"):
        events.transform(qm.where("kindd = 'Push'"))
    with pytest.raises(qm.SchemaError, match="no column kindd"):
        events.transform(qm.where(F.col("kindd") == "Push"))
    with pytest.raises(qm.SchemaError, match=r"no field siz.*did you mean 'size'"):
        events.transform(qm.where("payload.siz > 3"))
    with pytest.raises(qm.QueryError, match="unknown function lenght"):
        events.transform(qm.where("lenght(text) > 3"))


def test_what_is_no_condition_is_told_at_once(events):
    with pytest.raises(qm.QueryError, match="applied to nothing yet"):
        qm.where(udf(is_odd, "boolean"))
    with pytest.raises(qm.QueryError, match="plain function"):
        qm.where(len)
    with pytest.raises(qm.QueryError, match="not int"):
        qm.where(3)
    with pytest.raises(qm.SchemaError, match="BIGINT, not a condition"):
        events.transform(qm.where(F.col("id") + 1))
    with pytest.raises(qm.SchemaError, match="not a condition"):
        events.transform(qm.where("payload.size"))


def test_an_ambiguous_name_is_told(events):
    both = events.select("id", "kind").join(events.select("id", "kind"), "id")
    with pytest.raises(qm.SchemaError, match="ambiguous"):
        both.transform(qm.where("kind = 'Push'"))


def test_namesakes_are_no_trouble_as_long_as_nobody_names_them(events):
    left = events.select("id", "kind", "number")
    both = left.join(events.select("id", "kind", F.col("text").alias("Kind")), "id")
    for conditions in (
        ["id > 30", "number RLIKE '3'"],
        [odd("id"), "number RLIKE '3'"],
        [left["kind"] == "Push", odd("id")],
        [udf(lambda k: k == "Push", "boolean")(left["kind"]), "number RLIKE '3'"],
    ):
        plain = both
        for condition in conditions:
            plain = plain.filter(condition)
        out = both.transform(qm.where(*conditions))
        assert out.columns == both.columns
        assert sorted(map(str, out.collect())) == sorted(map(str, plain.collect()))
    named = qm.predicate(pc.is_valid, columns=["kind"], name="named")
    with pytest.raises(qm.SchemaError, match="kind is ambiguous: 3 columns have this name"):
        both.transform(qm.where(named))


LEARNING = qm.policies.Mesh(sample_rows=300)


@pytest.mark.parametrize("options", [{}, {"policy": LEARNING}, {"engine": "fabric"}])
def test_a_sample_meets_conditions_behind_their_guards(events, options):
    guarded = ("size(payload.commits) > 1", "payload.commits[1].ok", "text RLIKE '1'")
    agrees(events, *guarded, **options)
    agrees(events, "number RLIKE '^[0-9]+$'", F.expr("CAST(number AS INT) > 50"), **options)
    assert qm.advise(events, *guarded).verdict != "unknown"


def test_a_sample_that_fails_is_not_the_jobs_failure(events):
    """Unguarded, a job raises where its rows come to that; `where` itself only looked."""
    out = events.transform(qm.where("payload.commits[1].ok", "text RLIKE '1'", policy=LEARNING))
    assert "could not be taken" in qm.inspect(out).mesh.why
    with pytest.raises(Exception, match="INVALID_ARRAY_INDEX"):
        out.count()


@pytest.mark.parametrize("constant", [True, False, None])
def test_a_constant_column_is_a_condition(events, constant):
    agrees(events, F.lit(constant).cast("boolean"), odd("id"), "text RLIKE '1'")


@pytest.mark.parametrize("options", [{}, {"policy": LEARNING}, {"engine": "fabric"}])
def test_no_rows_pass_through_every_kind_of_condition(events, options):
    none = events.filter("id < 0")
    agrees(none, "text RLIKE '1'", odd("id"), "get_json_object(body, '$.n') > 3", **options)


@pytest.mark.parametrize("engine", ["auto", "fabric"])
def test_a_condition_that_may_raise_keeps_its_guards_before_it(events, engine):
    agrees(events, "size(payload.commits) > 1", "payload.commits[1].ok", engine=engine)
    agrees(events, "number <> 'none'", odd("id"), "CAST(number AS INT) > 50", engine=engine)
    agrees(events, F.col("number") != "none", odd(F.col("number").cast("int")), engine=engine)


def test_a_python_guard_written_before_a_cast_guards_it(events):
    is_number = qm.predicate(
        lambda t: t.isdigit(), columns=["number"], vectorised=False, name="num"
    )
    out = events.transform(qm.where(is_number, "CAST(number AS INT) > 50", "text LIKE '%1%'"))
    expected = events.filter("number <> 'none' AND try_cast(number AS INT) > 50")
    assert ids(out) == ids(expected.filter("text LIKE '%1%'"))


def test_a_function_that_raises_on_rows_that_others_drop_does_not_stop_the_query(events):
    reads = qm.predicate(lambda t: int(t) > 50, columns=["number"], vectorised=False, name="reads")
    expected = events.filter("number <> 'none'").filter("CAST(number AS INT) > 50")
    assert ids(events.transform(qm.where(reads, "number RLIKE '^[0-9]+$'"))) == ids(expected)
    with pytest.raises(Exception, match=r"(?s)reads.*none"):
        events.transform(qm.where(reads, "text LIKE '%1%'")).count()


def test_out_of_ansi_mode_numbers_wrap_as_sparks_do(spark):
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        frame = spark.range(5).selectExpr("id", "CAST(2147483645 + id AS INT) AS n", "'x' AS s")
        agrees(frame, "n + 3 < 0", "s RLIKE 'x'")
        agrees(frame, "CAST(s AS INT) IS NULL", "s RLIKE 'x'")
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
