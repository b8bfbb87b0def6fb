"""A job that cannot gain: few calls to the JVM, the plan that plain Spark has, no look at data."""

import re
from contextlib import contextmanager

import pytest
from py4j import java_gateway
from pyspark.sql import functions as F

import querymesh as qm
from querymesh.errors import QueryMeshError, UnsupportedError
from querymesh.spark.filters.learning import learning

COMPARISONS = ("n < 900", "kind IN ('a', 'b')", "s LIKE 'line%'", "part IS NOT NULL")
PATTERNS = ("n < 900", "s RLIKE '[1]7'", "s RLIKE '(3|4)+'", "kind <> 'c'")


@pytest.fixture
def small(spark, tmp_path):
    folder = str(tmp_path / "small")
    spark.range(1000).selectExpr(
        "id AS n", "concat('line ', id) AS s", "substr('abc', int(id % 3) + 1, 1) AS kind",
        "id % 5 AS part",
    ).repartition(2).write.parquet(folder)  # fmt: skip
    return spark.read.parquet(folder)


@contextmanager
def calls_to_java(monkeypatch):
    """What is sent to the JVM meanwhile, but for objects that Python let go."""
    sent = []
    real = java_gateway.GatewayClient.send_command

    def counting(self, command, *rest, **options):
        if not command.startswith("m\n"):
            sent.append(command)
        return real(self, command, *rest, **options)

    with monkeypatch.context() as patched:
        patched.setattr(java_gateway.GatewayClient, "send_command", counting)
        yield sent


def plan_of(frame):
    text = frame._jdf.queryExecution().executedPlan().toString()
    return re.sub(r"#\d+L?|\[plan_id=\d+\]", "", text)


def test_comparisons_take_as_many_calls_as_a_filter_and_a_schema(small, monkeypatch):
    with calls_to_java(monkeypatch) as sent:
        small.transform(qm.where(*COMPARISONS))
    assert len(sent) <= 5, sent
    assert sum("\nfilter\n" in command for command in sent) == 1


@pytest.mark.parametrize("conditions", [COMPARISONS, PATTERNS])
def test_the_plan_is_that_of_a_plain_filter(small, conditions):
    out = small.transform(qm.where(*conditions))
    cheap_first = sorted(conditions, key=lambda text: "RLIKE" in text)
    plain = small.filter(" AND ".join(f"({text})" for text in cheap_first))
    assert plan_of(out) == plan_of(plain)
    assert out.count() == plain.count() > 0


@pytest.mark.parametrize(
    "conditions", [PATTERNS, (*PATTERNS, "shiftright(n, 1) < 400"), ("n < 900", "even")]
)
def test_a_small_job_is_known_by_a_glance_and_spark_plans_it_once(small, monkeypatch, conditions):
    even = qm.predicate(lambda n: n % 2 == 0, columns=["n"], name="even", vectorised=False)
    given = [even if each == "even" else each for each in conditions]
    small.transform(qm.where(*given))  # texts and prices are known from here on

    def never(frame):
        raise AssertionError("planned for its statistics")

    monkeypatch.setattr(learning, "plan_statistics", never)
    with calls_to_java(monkeypatch) as sent:
        out = small.transform(qm.where(*given))
    assert "too small" in qm.inspect(out).mesh.why
    assert sum("\nfilter\n" in command for command in sent) == (1 if given == [*conditions] else 2)
    plain = small.filter(F.expr(" AND ".join(map(str, conditions[:-1]))))
    last = "n % 2 = 0" if conditions[-1] == "even" else conditions[-1]
    assert sorted(out.collect()) == sorted(plain.filter(last).collect())


def test_text_that_only_spark_reads_is_analysed_once_for_a_schema(small, monkeypatch):
    conditions = ("n < 900", "shiftright(n, 1) < 400")
    small.transform(qm.where(*conditions))
    with calls_to_java(monkeypatch) as sent:
        out = small.filter("part <> 2").transform(qm.where(*conditions))
    assert not any("toJSON" in command for command in sent)
    expected = small.filter("part <> 2 AND n < 900 AND shiftright(n, 1) < 400")
    assert sorted(out.collect()) == sorted(expected.collect())


def test_refusals_and_errors_are_the_same_the_second_time(small):
    for text, error, said in (
        ("rand() > 0.5", UnsupportedError, "not deterministic"),
        ("n IN (SELECT 1)", UnsupportedError, "subquery"),
        ("m < 3", QueryMeshError, "did you mean|nearest|has no column|unknown column"),
        ("n + 1", QueryMeshError, "not a condition"),
        ("shiftright(n, 1)", QueryMeshError, "not a condition"),
    ):
        for _ in range(2):
            with pytest.raises(error, match=said):
                small.transform(qm.where("n < 5", text))


def test_ansi_is_asked_for_again_where_it_matters(spark, small):
    text = "n * 9223372036854775807 > 0"
    counts = {}
    for ansi in ("true", "false", "true", "false"):
        before = spark.conf.get("spark.sql.ansi.enabled")
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        try:
            out = small.transform(qm.where("n < 3", text))
            counts.setdefault(ansi, set()).add(out.count())
            if ansi == "false":
                assert out.count() == small.filter(f"n < 3 AND {text}").count()
        finally:
            spark.conf.set("spark.sql.ansi.enabled", before)
    assert all(len(each) == 1 for each in counts.values())


def test_a_comment_at_the_end_of_a_text_swallows_nothing(small):
    out = small.transform(qm.where("shiftright(n, 1) < 400 -- half", "n > 10"))
    assert out.count() == small.filter("shiftright(n, 1) < 400 AND n > 10").count()
