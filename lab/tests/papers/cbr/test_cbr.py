import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from querymesh.fabric.core.metrics import Metrics
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.measure import CONTROL, Timing
from querymesh_lab.papers import papers
from querymesh_lab.papers.cbr import (
    adapt_figures,
    cbr,
    cbr_lab,
    cost_figures,
    eddy_runs,
    further_settings,
    random_claims,
    random_selectivities,
    skew,
    timed_streams,
)
from querymesh_lab.papers.cbr.stream_star import StreamStar, skewed

PROMISED = {"paper", "figure", "claim", "paper_value", "our_value", "unit", "verdict"}


@pytest.fixture(scope="module")
def bench():
    return Bench(quick=True)  # everything runs in this process, without Spark


def readings(rows=6000, seed=0):
    rng = np.random.default_rng(seed)
    sensor = rng.integers(1, 9, rows)
    minutes = np.arange(rows) * 2880 // rows
    return pa.record_batch(
        {
            "sensor": sensor,
            "day": 4 + minutes // 1440,
            "hour": minutes // 60 % 24,
            "minute": minutes % 60,
            "second": np.zeros(rows, np.int64),
            "light": np.where(sensor > 4, 900.0, 100.0) + rng.uniform(0, 100, rows),
            "temperature": rng.uniform(15, 30, rows),
            "humidity": rng.uniform(20, 50, rows),
            "voltage": rng.uniform(2, 3, rows),
        }
    )


def rows_of(found):
    rows = json.loads(json.dumps([result.as_row("a command") for result in found.results]))
    assert rows
    for row in rows:
        assert row.keys() >= PROMISED
        assert (row["our_value"] is None) == (row["verdict"] == "not yet")
        assert row["whose"] in ("paper", "project")
    return rows


def test_content_learns_finds_the_classifier_attribute_and_comes_near_to_content_knows():
    case = eddy_runs.star_case(StreamStar(skewed(2, 0.05)), 16_000, 0)
    found = eddy_runs.count(case)
    assert found.calls[eddy_runs.KNOWS] < found.calls[eddy_runs.LEARNS] < found.calls[eddy_runs.SBR]
    assert found.above_knows() < 12
    assert found.improvement(eddy_runs.KNOWS) > found.improvement() > 15
    kinds = Counter()
    for (_, went_by), calls in found.learned.routing.items():
        kinds[random_selectivities.kind_of(went_by)] += calls
    assert kinds[random_selectivities.RIGHT] > 10 * kinds[random_selectivities.WRONG]
    assert sum(kinds.values()) == found.learned.routing_calls


def test_improvement_is_over_the_better_setting_of_sbr():
    found = eddy_runs.CountedRun(
        {eddy_runs.SBR: 2.0, eddy_runs.LOTTERY: 4.0, eddy_runs.LEARNS: 1.0, eddy_runs.KNOWS: 0.5},
        {},
        Metrics(),
    )
    assert (found.improvement(), found.improvement(eddy_runs.KNOWS)) == (50.0, 75.0)
    assert found.improvement(over=eddy_runs.LOTTERY) == 75.0


def test_every_rival_gives_the_same_results():
    case = eddy_runs.star_case(StreamStar(skewed(3, 0.2)), 4000, 0)
    routers = (case.sbr(eddy_runs.COUNTING), case.learns(eddy_runs.COUNTING), case.knows())
    assert len({case.run(router).rows_out for router in routers}) == 1


def test_what_calls_went_by_has_the_names_of_figure_5():
    assert random_selectivities.kind_of("classifier attrC") == random_selectivities.RIGHT
    assert random_selectivities.kind_of("classifier key1") == random_selectivities.WRONG
    assert random_selectivities.kind_of("no classifier") == random_selectivities.NONE
    assert random_selectivities.kind_of("profiling") == "profiling"


def test_a_mean_has_its_confidence_interval():
    found = eddy_runs.mean_and_error([1.0, 2.0, 3.0])
    assert found["mean"] == 2.0
    assert found["half_interval"] == pytest.approx(4.30 / np.sqrt(3), rel=1e-3)
    assert found["streams"] == 3
    assert eddy_runs.mean_and_error([1.0])["half_interval"] is None


def test_two_attributes_tell_the_class_only_together():
    case = further_settings.together_case(20_000, 0)
    kind, left, right = (np.asarray(case.batch.column(n)) for n in ("attrC", "left", "right"))
    assert ((left + right) % 4 == kind).all()
    assert "attrC" not in case.attributes
    for alone in (left, right):
        counts = np.histogram2d(alone, kind, bins=4)[0]
        assert abs(counts / len(kind) - 1 / 16).max() < 0.01


def test_settings_are_judged_on_other_streams_than_those_of_the_figures(bench):
    largest = further_settings.workloads(bench, None)["largest skew, 4 joins"]
    figures = [eddy_runs.star_case(StreamStar(skewed(4, 0.05)), 5000, seed) for seed in range(10)]
    for case in largest:
        assert not any(case.batch.equals(other.batch) for other in figures)


def test_the_largest_skew_has_the_papers_claim(bench):
    points = [
        skew.SkewPoint(8, 0.05, (_counted(4.7, 1.5, own=1.4),)),
        skew.SkewPoint(8, 0.95, (_counted(2.0, 1.9, own=1.7),)),
    ]
    rows = {row.claim.claim: row for row in skew.results(points)}
    row = rows["8 joins, largest skew: fewer routing calls than SBR"]
    assert (row.claim.paper_value, row.verdict) == (67.8, "exceeds")
    assert rows["A < B, all joins: fewer routing calls than SBR"].claim.paper_value == 26.9
    assert rows["A > B, all joins: fewer routing calls than SBR"].verdict == "direction"
    beyond = rows["A > B, all joins, settings beyond the paper's: fewer routing calls than SBR"]
    assert (beyond.our_value, beyond.claim.paper_value) == (pytest.approx(15.0), 10.2)
    known = [point["improvement_beyond"]["mean"] for point in beyond.details["points"]]
    assert known == [pytest.approx(100 * (1 - 1.4 / 4.7)), pytest.approx(15.0)]


def test_how_near_to_content_knows_is_told_of_the_worst_skew():
    points = [
        skew.SkewPoint(8, 0.05, (_counted(4.7, 1.03, knows=1.0),)),
        skew.SkewPoint(6, 0.35, (_counted(4.7, 1.2, own=1.04, knows=1.0),)),
        skew.SkewPoint(6, 0.95, (_counted(4.7, 1.02, knows=1.0),)),
    ]
    learns, own = (row for row in skew.results(points) if "worst skew" in row.claim.claim)
    assert learns.claim.whose == own.claim.whose == "project"
    assert (learns.our_value, learns.verdict) == (pytest.approx(20.0), "contradicts")
    assert learns.note == "6 joins, A 35%; kept at 2 of 3 points"
    assert (own.our_value, own.verdict) == (pytest.approx(4.0), "exceeds")


def test_how_near_to_content_knows_has_a_row_for_each_number_of_joins():
    found = [
        random_selectivities.RandomStreams(joins, counted=[_counted(4.0, learns, knows=1.0)])
        for joins, learns in ((4, 1.1), (8, 1.02))
    ]
    rows = random_claims.above_knows(found)
    assert [(row.claim.claim.split(":")[0], row.verdict) for row in rows] == [
        ("4 joins, Content-Learns", "contradicts"),
        ("8 joins, Content-Learns", "exceeds"),
        (f"4 joins, {eddy_runs.OWN}", "contradicts"),
        (f"8 joins, {eddy_runs.OWN}", "exceeds"),
    ]


def test_with_few_streams_a_mean_within_its_interval_of_the_bound_is_undecided():
    calls = [_counted(4.0, learns, knows=1.0) for learns in (1.02, 1.06)]
    found = [random_selectivities.RandomStreams(4, counted=calls)]
    row = random_claims.above_knows(found)[0]
    assert row.our_value == pytest.approx(4.0)
    assert row.half_interval > 1.0
    assert row.verdict == "undecided"


def test_figure_7_says_that_its_streams_were_fitted():
    streams = random_selectivities.RandomStreams(6, 0.05, [_counted(4.0, 2.0)])
    streams.details = dict
    rows = random_claims.figure_7([streams])
    assert [row.claim.paper_value for row in rows] == [37.0] * 3
    assert all(row.as_row("")["fitted"] for row in rows)


def test_times_stand_beside_both_forms_of_sbr():
    seconds = {
        eddy_runs.SBR: (1.0,), eddy_runs.LOTTERY: (4.0,), eddy_runs.LEARNS: (2.0,), CONTROL: (1.1,)
    }  # fmt: skip
    timing = Timing(seconds, eddy_runs.SBR)
    found = timed_streams.TimedStreams("7", "a point", 0.05, [timing], [], [])
    lottery, least = timed_streams.results([found])
    assert (lottery.our_value, least.our_value) == (50.0, -100.0)
    assert "lottery" in lottery.claim.claim
    assert "least" in least.claim.claim
    assert [row.claim.paper_value for row in (lottery, least)] == [25.4, 25.4]
    assert (lottery.verdict, least.verdict) == ("exceeds", "contradicts")
    assert lottery.a_a == pytest.approx(1.1)


def test_streams_beyond_the_first_are_not_counted_with_settings_of_our_own():
    counted = (_counted(4.0, 2.0, own=1.0), _counted(4.0, 3.0))
    del counted[1].calls[eddy_runs.OWN]
    point = skew.SkewPoint(2, 0.05, counted)
    assert point.improvements(eddy_runs.OWN) == [75.0]
    assert point.improvement() == pytest.approx(37.5)


def _counted(sbr, learns, own=None, knows=None):
    calls = {
        eddy_runs.SBR: sbr,
        eddy_runs.LOTTERY: sbr,
        eddy_runs.LEARNS: learns,
        eddy_runs.OWN: own or learns,
        eddy_runs.KNOWS: knows or learns,
    }
    return eddy_runs.CountedRun(calls, dict(calls), Metrics())


def test_figure_8_finds_that_the_sensor_tells_most_about_light():
    moments = adapt_figures.figure_8(readings(12_000))
    assert moments
    assert {moment.best for moment in moments} == {"sensor"}
    assert all(0.3 < moment.selectivity < 0.7 for moment in moments)
    assert [m.hours for m in moments] == sorted(m.hours for m in moments)
    row = adapt_figures.results_8(moments)[0]
    assert row.our_value == 100


def test_random_bounds_lie_in_the_outer_quarters_of_the_domain():
    batch = readings()
    for name, (low, high) in cbr_lab.random_bounds(batch, np.random.default_rng(0)).items():
        domain = np.unique(np.asarray(batch.column(name)))
        assert low <= domain[len(domain) // 4] < domain[3 * len(domain) // 4 - 1] <= high


def test_filters_with_a_cost_give_the_same_results():
    batch = readings(500)
    bounds = cbr_lab.random_bounds(batch, np.random.default_rng(0))
    plain, dear = (cbr_lab.q2(batch, bounds, cost) for cost in (None, 1.0))
    assert (
        plain.run(plain.sbr(eddy_runs.COUNTING)).rows_out
        == dear.run(dear.sbr(eddy_runs.COUNTING)).rows_out
    )


def test_figure_9_has_our_target_of_overhead_with_the_cheapest_operators_that_cost_anything():
    found = [
        cost_figures.DearerPoint(
            cost_us,
            Timing(
                {eddy_runs.SBR: (1.0,), eddy_runs.LEARNS: (seconds,), CONTROL: (1.01,)},
                eddy_runs.SBR,
            ),
            {eddy_runs.SBR: 2.0, eddy_runs.LEARNS: 1.99},
        )
        for cost_us, seconds in ((0.0, 3.0), (100.0, 1.02), (500.0, 0.9))
    ]
    row = cost_figures.results_9(found)[-1]
    assert row.claim.claim == "Q2, operators of 100 µs: more time than SBR"
    assert (row.claim.whose, row.claim.paper_value, row.verdict) == ("project", 5.0, "exceeds")
    assert row.our_value == pytest.approx(2.0)
    assert row.note == "calls saved: 0.5 %"


def test_calls_until_a_tuple_is_dropped_leave_out_those_of_results():
    batch = readings(3000)
    case = cbr_lab.q2(batch, cbr_lab.random_bounds(batch, np.random.default_rng(1)))
    found = adapt_figures.answer(case)
    for name in (eddy_runs.SBR, eddy_runs.LOTTERY, eddy_runs.LEARNS):
        assert found.calls[name] == pytest.approx(found.until_dropped[name] + 4 * found.passed)


@pytest.mark.parametrize("figure", list(cbr.FIGURES))
def test_every_figure_runs_and_has_rows(bench, figure, monkeypatch):
    monkeypatch.setattr(cbr, "_readings", readings)
    found = cbr.FIGURES[figure](bench)
    rows = rows_of(found)
    assert all(row["paper"] == "cbr" for row in rows)
    if figure != "further":
        pytest.importorskip("altair")
        pytest.importorskip("vl_convert")
        assert all(text.startswith("<svg") for draw in found.drawings for text in draw().values())


@pytest.mark.parametrize("figure", ["8", "9"])
def test_without_the_lab_data_its_figures_say_so(bench, figure, monkeypatch):
    monkeypatch.setattr(cbr, "_readings", lambda: None)
    rows = rows_of(cbr.FIGURES[figure](bench))
    assert [row["note"] for row in rows] == ["no Lab data here"]


def test_the_paper_is_known_by_its_name():
    assert papers.PAPERS["cbr"] is cbr.FIGURES
