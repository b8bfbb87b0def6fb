"""`qm.advise`: would it help? Asked of real DataFrames."""

import pytest

import querymesh as qm
from querymesh.spark.filters.learning.learning import Learning


@pytest.fixture(scope="module")
def rows(spark, tmp_path_factory):
    """20,000 requests of 40 agents in a file."""
    path = str(tmp_path_factory.mktemp("advise") / "rows")
    spark.range(20_000).selectExpr(
        "id",
        "CAST(id % 7 AS INT) AS kind",
        "concat('agent', id % 40) AS agent",
        "concat('GET /', sha1(CAST(id AS STRING))) AS payload",
    ).write.parquet(path)
    return spark.read.parquet(path)


@qm.predicate(columns=["agent"], vectorised=False)
def slow(agent):
    return sum(range(200)) > 0 and agent.endswith("7")


@qm.predicate(columns=["payload"], vectorised=False)
def other(payload):
    return sum(range(50)) > 0 and "ab" in payload


def test_no_condition_and_conditions_that_spark_has_in_its_scan_are_a_plain_no(rows):
    none = qm.advise(rows)
    assert (none.verdict, none.why) == ("no", "there is no condition")
    pushed = qm.advise(rows, "kind < 3", "id > 100")
    assert pushed.verdict == "no"
    assert pushed.left_to_spark == ("kind < 3", "id > 100")
    assert pushed.sample_rows == 0


def test_a_small_job_is_told_what_it_could_gain_and_that_learning_costs_more(rows):
    advice = qm.advise(rows, slow, other, "kind <> 4")
    assert advice.verdict == "no"
    assert advice.engine == "plain"
    assert advice.left_to_spark == ("kind <> 4",)
    assert [each.name for each in advice.conditions] == ["slow", "other"]
    assert advice.sample_rows > 0
    assert 0.9 * 2 * advice.sample_rows < advice.calls <= 2 * advice.sample_rows, "equal rows once"
    assert advice.job.rows == 20_000
    assert advice.conditions[0].distinct == 40
    assert advice.plain_us > 0
    text = str(advice)
    for word in ("by order", "by another implementation", "by kinds of rows", "by remembering"):
        assert word in text
    assert "µs a row" in advice._repr_html_()


def test_a_policy_that_insists_on_learning_is_told_the_engine_it_gets(rows):
    policy = qm.policies.Mesh(sample_rows=500)
    advice = qm.advise(rows, slow, other, policy=policy)
    assert advice.decision is not None
    assert advice.engine == advice.decision.chosen
    before = Learning.learn
    try:
        Learning.learn = None  # nobody must learn again what advise has learned
        out = rows.transform(qm.where(slow, other, policy=policy))
    finally:
        Learning.learn = before
    assert qm.inspect(out).preparation.remembered


def test_one_condition_can_be_asked_about(rows):
    advice = qm.advise(rows, "payload RLIKE 'a.*b.*c'")
    assert len(advice.conditions) == 1
    assert advice.verdict in ("yes", "no")


def test_functions_are_given_by_name(rows):
    advice = qm.advise(rows, "lucky(agent)", functions={"lucky": slow})
    assert advice.conditions[0].name == "slow"  # as the predicate calls itself


def test_what_cannot_be_sampled_is_unknown_with_the_reason(rows):
    counted = rows.groupBy("agent").count()
    advice = qm.advise(counted, "agent RLIKE '7$'")
    assert advice.verdict == "unknown"
    assert "aggregate" in advice.why
    assert "cached" in advice.why
    empty = qm.advise(rows.filter("id < 0"), slow, other)
    assert empty.verdict == "unknown"
    assert "the sample is empty" in empty.why


def test_a_stream_is_asked_for_a_batch(spark, rows, tmp_path):
    stream = spark.readStream.schema(rows.schema).parquet(str(tmp_path))
    advice = qm.advise(stream, slow, other)
    assert advice.verdict == "unknown"
    assert "batch DataFrame" in advice.why


def test_wrong_conditions_and_policies_are_refused_as_by_where(rows):
    with pytest.raises(qm.SchemaError, match="payload"):
        qm.advise(rows, "paylod RLIKE 'x'")
    with pytest.raises(qm.OptionError, match="policy='mesh'"):
        qm.advise(rows, slow, policy="eddy")
    with pytest.raises(qm.QueryError, match="predicate"):
        qm.advise(rows, len)


def test_a_job_that_a_glimpse_settles_is_advised_all_the_same(spark, tmp_path):
    spark.range(0, 1_000_000, 1, 4).selectExpr(
        "id", "concat(repeat('qwertyuiop', 12), IF(id % 1000 = 0, 'rare', 'often')) AS s"
    ).write.parquet(str(tmp_path / "texts"))
    texts = spark.read.parquet(str(tmp_path / "texts"))
    advice = qm.advise(texts, "s RLIKE '[r]are'", "s RLIKE '[q]wer'", "s RLIKE '[t]yui'")
    assert advice.verdict in ("no", "yes")
    assert advice.plain_us > 0
