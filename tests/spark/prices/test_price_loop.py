"""Wrong prices come right by what conditions and tasks take, and decisions with them."""

import pytest

import querymesh as qm
from querymesh.fabric.core.metrics import Metrics
from querymesh.runtime.preparation import PricedStage
from querymesh.runtime.task_report import TaskReport, ViewReport
from querymesh.spark.filters.learning.limits import TOO_SMALL
from querymesh.spark.prices import machine_prices
from querymesh.spark.prices.machine_prices import (
    LONGEST_STEP,
    SLOWEST,
    cost_table,
    measured_against,
    measured_slower,
    remember_slower,
    remembered_slower,
)
from querymesh.spark.prices.price_loop import LEAST_ROWS, PriceLoop


@pytest.fixture
def wrong_prices(spark, monkeypatch, tmp_path):
    """Has this machine remembered as so many times as slow as it is; returns the true factor."""
    monkeypatch.setenv("QUERYMESH_CACHE", str(tmp_path))
    true = min(measured_slower(spark), 1.9)  # more is a busy moment

    def remember(times):
        assert true * times < SLOWEST
        remember_slower(tmp_path, machine_prices._machine(spark), true * times)
        assert cost_table(spark).slower == pytest.approx(true * times)
        return true

    yield remember
    machine_prices._slower_in.cache_clear()


def test_shorter_times_count_where_three_agree_and_change_prices_by_a_bounded_step(
    spark, wrong_prices
):
    wrong_prices(1)
    before = cost_table(spark)
    for ratio in (0.02, 0.405):
        measured_against(spark, before, ratio)
        assert cost_table(spark) == before, "a single price may be wrong by as much"
    measured_against(spark, before, 0.1)
    assert cost_table(spark).slower == pytest.approx(before.slower * 0.9)
    for _ in range(3):
        level = cost_table(spark).slower
        measured_against(spark, cost_table(spark), 0.011)
    assert cost_table(spark).slower == pytest.approx(level / LONGEST_STEP)


def test_times_about_as_long_as_prices_say_leave_them_as_they_are(spark, wrong_prices):
    wrong_prices(1)
    before = cost_table(spark)
    for ratio in (0.51, 0.6, 0.9, 0.55, 1.1, 1.9, 1.5, 1.3):
        measured_against(spark, before, ratio)
    assert cost_table(spark) == before


def test_longer_times_count_only_where_three_agree_and_then_the_least_of_them(spark, wrong_prices):
    wrong_prices(1)
    before = cost_table(spark)
    for ratio in (9.0, 2.42):
        measured_against(spark, before, ratio)
        assert cost_table(spark) == before
    measured_against(spark, before, 4.0)
    assert cost_table(spark).slower == pytest.approx(before.slower * 1.1)
    measured_against(spark, cost_table(spark), 0.999)  # they do not agree
    measured_against(spark, cost_table(spark), 5.0)
    assert cost_table(spark).slower == pytest.approx(before.slower * 1.1)


def test_what_was_corrected_is_remembered_for_the_next_session(spark, wrong_prices, tmp_path):
    wrong_prices(1)
    for _ in range(3):
        measured_against(spark, cost_table(spark), 0.3)
    kept = remembered_slower(tmp_path, machine_prices._machine(spark))
    assert kept == pytest.approx(cost_table(spark).slower)


def test_no_measurement_at_all_changes_nothing(spark, wrong_prices):
    wrong_prices(1)
    before = cost_table(spark)
    for ratio in (0.0, float("nan"), float("inf"), 1e-9, -1.0):
        measured_against(spark, before, ratio)
    assert cost_table(spark) == before


def lines(spark, rows):
    text = "concat('GET /index/', id, '/item ', id % 97, repeat(' of a log', 8)) AS s"
    return spark.range(rows).selectExpr("id", text)


@pytest.mark.parametrize(("times", "learns"), [(20.0, True), (0.1, False)])
def test_a_wrong_table_comes_right_after_some_calls_and_changes_what_is_decided(
    spark, wrong_prices, times, learns
):
    true = wrong_prices(times)
    # Twenty times dearer it would be worth a sample, though it is small; ten times cheaper a large
    # one would not be.
    job = lines(spark, 2_000_000 if learns else 40_000_000)
    conditions = ["s RLIKE '(7|8)+/item'", "s RLIKE '1[^0]*2'"]

    def worth_learning():
        out = job.transform(qm.where(*conditions))
        return qm.inspect(out).preparation.mesh.why != TOO_SMALL

    assert worth_learning() is learns
    policy = qm.policies.Mesh(sample_rows=300)
    for number in range(60):
        if worth_learning() is not learns:
            break
        some = lines(spark, 5000)
        asked = [f"s RLIKE '[{number % 10}]+/item {number}'", f"s RLIKE '{number}[^0]*2'"]
        some.transform(qm.where(*asked, policy=policy))
    assert worth_learning() is not learns
    # Prices move only by what is clear beyond a factor of two, on whatever else the machine does.
    assert 0.2 < cost_table(spark).slower / true < 5


def test_a_task_that_is_faster_than_its_conditions_are_priced_shows_prices_too_high(
    spark, wrong_prices
):
    wrong_prices(50)
    before = cost_table(spark)

    @qm.predicate(columns=["id"], cost_us=2000)  # so that the pattern comes first
    def even(ids):
        return [value % 2 == 0 for value in ids.to_pylist()]

    rows = lines(spark, 60_000)
    out = rows.transform(
        qm.where(even, "s RLIKE '[13579]/item'", policy=qm.policies.Mesh(sample_rows=300))
    )
    priced = qm.inspect(out).preparation.priced
    assert priced is not None
    level = cost_table(spark).slower
    expected = rows.filter("id % 2 = 0 AND s RLIKE '[13579]/item'").count()
    for _ in range(3):  # three tasks at least must say so
        assert out.count() == expected
    assert cost_table(spark).slower < level <= before.slower


def test_a_slow_task_or_a_small_one_says_nothing_of_prices(spark, wrong_prices):
    wrong_prices(1)
    before = cost_table(spark)
    loop = PriceLoop(spark, "input", PricedStage(2.0, before))
    for rows, seconds in ((LEAST_ROWS - 1, 1e-6), (LEAST_ROWS, 1.0), (LEAST_ROWS, 0.0)):
        metrics = Metrics()
        metrics.rows_in = rows
        loop.receive(TaskReport({"input": ViewReport(metrics)}, seconds=seconds))
    assert cost_table(spark) == before
