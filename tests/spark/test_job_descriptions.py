"""Jobs that we start say what they are for in Spark's UI; the user's own description comes back."""

import logging

import pytest

import querymesh as qm


@qm.predicate(columns=["payload"])
def calm(payload):
    return [value != "storm" for value in payload.to_pylist()]


@pytest.fixture
def described(spark):
    """Runs a call under a description of the user's, and returns those of all jobs it started."""
    context = spark.sparkContext
    store = context._jsc.sc().statusStore()

    def jobs():
        found = store.jobsList(None)
        return {found.apply(i).jobId(): found.apply(i) for i in range(found.size())}

    def call(work):
        before = set(jobs())
        context.setJobDescription("the user's own")
        try:
            work()
            assert context.getLocalProperty("spark.job.description") == "the user's own"
        finally:
            context.setLocalProperty("spark.job.description", None)
        context._jsc.sc().listenerBus().waitUntilEmpty()
        started = {number: job for number, job in jobs().items() if number not in before}
        return [job.description().get() for job in started.values()]

    return call


def frame(spark):
    return spark.range(500).selectExpr(
        "id", "id % 5 AS k", "IF(id % 3 = 0, 'storm', 'sun') AS payload"
    )


def test_sampling_for_where_is_described(spark, described):
    policy = qm.policies.Mesh(sample_rows=100)
    work = qm.where(calm, "payload RLIKE 's.*n'", policy=policy)
    told = described(lambda: frame(spark).transform(work))
    assert told
    assert all(text.startswith("QueryMesh: a sample of") for text in told), told


def test_training_and_collecting_a_look_up_table_are_described(spark, described, caplog):
    asked = qm.query(
        "SELECT s.id FROM s, n WHERE s.k = n.k AND calm(s.payload)", functions={"calm": calm}
    )
    inputs = {"s": frame(spark), "n": spark.range(5).selectExpr("id AS k")}
    with caplog.at_level(logging.INFO, "querymesh"):
        told = described(lambda: qm.train(asked, inputs))
    assert all(text.startswith("QueryMesh: ") for text in told), told
    assert any("the rows of n" in text for text in told), told
    assert [line for line in caplog.messages if line.startswith("learned from 500 rows in ")]


def test_training_for_catalyst_starts_no_job_but_the_sample(spark, described):
    asked = qm.query("SELECT * FROM t WHERE payload RLIKE 's.*n' AND k RLIKE '1'")
    data = frame(spark).selectExpr("id", "CAST(k AS STRING) AS k", "payload")
    told = described(lambda: qm.train(asked, data, engine="native"))
    assert all(text.startswith("QueryMesh: ") for text in told), told
    assert told
    assert all("a sample of" in text for text in told), told


def test_the_stretch_that_a_join_learns_from_is_described_and_told(spark, described, caplog):
    asked = qm.query(
        "SELECT a.id FROM A a [RANGE 4 SECONDS], B b [RANGE 4 SECONDS], C c [RANGE 4 SECONDS] "
        "WHERE a.k = b.k AND b.k = c.k",
        time="ts",
    )
    rows = spark.range(90).selectExpr("id", "id % 7 AS k", "timestamp_millis(id * 100) AS ts")
    with caplog.at_level(logging.INFO, "querymesh"):
        told = described(lambda: qm.train(asked, {"A": rows, "B": rows, "C": rows}))
    assert told
    assert all(text.startswith("QueryMesh: ") for text in told), told
    assert [line for line in caplog.messages if line.startswith("learned from ")]
