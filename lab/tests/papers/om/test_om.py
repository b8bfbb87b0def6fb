import gzip
import json
import math

import numpy as np
import pytest

from querymesh.errors import QueryMeshError
from querymesh.optimize.chart.query_charts import ChosenPlan
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.data.real_folder import holds
from querymesh_lab.papers import papers
from querymesh_lab.papers.om import (
    grid_charts,
    look_back,
    many_queries,
    om,
    om_charts,
    om_data,
    weights_example,
)
from querymesh_lab.papers.om.courses import join_courses, single_courses
from querymesh_lab.papers.om.om_data import (
    HOST,
    Conversations,
    HostCourse,
    IndependentHosts,
    course,
    scaled,
    smoothed,
    stretch,
    urnd,
    variation_of,
)
from querymesh_lab.papers.om.round_runs import SINGLE, STREAMS, QueryFollower, follow, q1, q2


@pytest.fixture(scope="module")
def bench():
    return Bench(quick=True)  # everything runs in this process, without Spark


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Twelve minutes of gaps: a rate that swings slowly around 100, with exponential noise."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    gaps, now = [], 0.0
    while now < 720:
        gaps.append(rng.exponential(1 / (100 + 40 * math.sin(now / 30))))
        now += gaps[-1]
    (folder / "traces").mkdir()
    with gzip.open(folder / om_data.GAPS, "wt") as out:
        out.writelines(f"{gap:.6f}\n" for gap in gaps)
    return folder


def still(rates, shares):
    """A course whose rounds have exactly these numbers of tuples and shares of host 2."""
    hosts = []
    for rate, share in zip(rates, shares, strict=True):
        found = np.full(rate, HOST + 1)
        found[: round(share * rate)] = HOST
        hosts.append(found)
    return HostCourse({SINGLE: hosts})


def rows_of(results):
    rows = json.loads(json.dumps([result.as_row("a command") for result in results]))
    assert rows
    assert {row["paper"] for row in rows} == {"om"}
    return {row["claim"]: row for row in rows}


def test_the_numbers_of_section_3_2_come_out_as_printed():
    rows = rows_of(weights_example.results())
    values = [row["our_value"] for row in rows.values()]
    assert values == [697.52, 517.54, 5550.0, 9150.0, 0.0]
    assert {row["verdict"] for row in rows.values()} == {"exceeds"}
    chosen = [row["details"].get("chosen plan") for row in rows.values()]
    assert chosen == [2, 2, 1, 1, None], "weights choose"


def test_a_number_that_is_off_contradicts(monkeypatch):
    monkeypatch.setitem(weights_example.PRINTED, 2, (5551.0, 9150.0))
    rows = [*rows_of(weights_example.results()).values()]
    assert rows[-1]["verdict"] == "contradicts"


def test_gaps_become_tuples_a_second(tmp_path):
    (tmp_path / "traces").mkdir()
    with gzip.open(tmp_path / om_data.GAPS, "wt") as out:
        out.write("0.5\n0.25\n0.5\n1.0\n0.5\n")
    assert holds(tmp_path, om_data.FILES)
    assert not holds(None, om_data.FILES)
    assert om_data.rates(tmp_path).tolist() == [2.0, 1.0, 2.0]
    with pytest.raises(QueryMeshError, match="no 1th of 6 stretches"):
        stretch(om_data.rates(tmp_path), 0)


def test_filters_change_how_erratic_a_trace_is_and_not_how_fast(trace):
    rates = om_data.rates(trace)
    for wanted in (0.09, 0.26):
        assert variation_of(scaled(rates, wanted)) == pytest.approx(wanted)
        assert scaled(rates, wanted).mean() == pytest.approx(rates.mean())
    assert variation_of(smoothed(rates, 10)) < variation_of(rates)
    assert smoothed(rates, 10).mean() == pytest.approx(rates.mean(), rel=0.02)
    assert smoothed(rates, 1).tolist() == rates.tolist()


@pytest.mark.parametrize("talk", [Conversations(active=40, lasting_s=3), IndependentHosts()])
def test_hosts_have_their_shares_in_the_long_run(talk):
    met = course({SINGLE: np.full(2000, 50.0)}, talk)
    hosts = np.concatenate(met.hosts[SINGLE])
    shares = np.bincount(hosts, minlength=om_data.HOSTS) / len(hosts)
    assert shares == pytest.approx(om_data.popularity(), abs=0.03)
    assert om_data.popularity().sum() == pytest.approx(1.0)


def test_conversations_make_shares_that_last_and_single_packets_do_not():
    rates = {SINGLE: np.full(600, 200.0)}
    lasting, alone = (
        course(rates, talk).selectivities(SINGLE) for talk in (Conversations(), IndependentHosts())
    )
    assert np.corrcoef(lasting[1:], lasting[:-1])[0, 1] > 0.8
    assert abs(np.corrcoef(alone[1:], alone[:-1])[0, 1]) < 0.2


def test_a_course_counts_what_its_tuples_have():
    met = HostCourse(
        {"a": [np.array([1, 2, 2]), np.array([5])], "b": [np.array([2, 1]), np.array([5])]}
    )
    assert met.rates("a").tolist() == [3.0, 1.0]
    assert met.selectivities("a").tolist() == [pytest.approx(2 / 3), 0.0]
    assert met.join_selectivities("a", "b").tolist() == [pytest.approx(3 / 6), 1.0]
    assert (met.rounds, met.tuples) == (2, 7)


def test_urnd_is_fast_and_has_no_memory():
    met = urnd(STREAMS, 400)
    rates = met.rates("TCP")
    assert rates.min() >= 500
    assert abs(np.corrcoef(rates[1:], rates[:-1])[0, 1]) < 0.15
    assert met.join_selectivities("TCP", "SF").mean() == pytest.approx(1 / om_data.HOSTS, rel=0.05)


def test_q2_has_the_three_orders_of_the_paper():
    assert len(q2(urnd(STREAMS, 20)).orders) == 3


def test_what_is_counted_afterwards_is_what_the_schedule_counted(trace, bench):
    for query, met in ((q1, single_courses(bench, trace)[0]), (q2, join_courses(bench, trace)[0])):
        found = follow(query(met), met)
        assert found.hits.sum() == found.counted.hits
        assert len(found.hits) == found.counted.rounds == met.rounds


def test_rounds_without_a_result_are_left_out():
    met = still([100, 101] * 10, [0.5] * 10 + [0.0] * 10)
    found = follow(q1(met), met)
    assert found.counted.rounds == 20
    assert found.numbers.tolist() == [*range(10)]
    assert found.random == 50.0
    assert math.isfinite(found.excess)


def test_rivals_of_a_stream_that_turns_over_half_way():
    met = still([100, 101] * 10, [0.9] * 10 + [0.1] * 10)
    found = follow(q1(met), met, d=1)
    assert found.rate == 50.0, "RATE keeps the plan of the first rounds"
    assert found.hindsight == 50.0
    assert found.random == 50.0
    assert found.without_forecast == 100.0
    assert found.fidelity == 95.0, "one round is lost where it turns"
    assert found.counted.switches == 1
    assert 0 < found.excess < found.random_excess
    assert found.by_hundred() == [95.0]


def test_a_projection_that_keeps_all_never_pays_first(trace, bench):
    met = single_courses(bench, trace)[0]
    found = follow(q1(met, keeps=1.0), met)
    assert (found.counted.switches, found.fidelity, found.rate) == (0, 100.0, 100.0)


def test_join_selectivities_that_move_are_estimated_anew(bench, trace):
    met = join_courses(bench, trace, talk=Conversations(lasting_s=20))[0]
    followed = follow(q2(met), met, threshold=0.25)
    never = follow(q2(met), met, threshold=1e9)
    assert followed.counted.rebuilt > never.counted.rebuilt == 1
    assert followed.fidelity > never.fidelity + 10
    assert "RATE" not in followed.details()
    with pytest.raises(QueryMeshError, match="built anew"):
        _ = followed.without_forecast


def test_a_swing_faster_than_the_estimates_is_worse_than_random():
    fast, slow = (look_back.swinging(period, 60) for period in (2, 30))
    assert follow(q1(fast, 40), fast).fidelity < 10
    assert follow(q1(slow, 40), slow).fidelity > 85


def test_ten_queries_are_served_in_turn_and_a_heavy_one_starves_nobody(trace, bench):
    served = many_queries.serve(
        many_queries.queries(bench, trace, lambda rates: smoothed(rates, 30))
    )
    names = list(served.followers)
    assert len(names) == 10
    assert [turn.query for turn in served.turns[:20]] == names * 2
    assert served.longest_turns == 9
    assert served.longest_over_bound <= 1.0
    took = {name: served.queue.served(name).busy_s for name in names}
    assert took[many_queries.HEAVY] > 10 * max(
        took[name] for name in names if name != many_queries.HEAVY
    )


def test_a_round_takes_as_long_as_its_plan_has_tuples_to_process():
    met = still([100, 101], [0.25, 0.25])
    follower = QueryFollower(q1(met), met)
    selected_first, projected_first = (
        many_queries.seconds(follower, ChosenPlan((SINGLE,), (plan,)), 0) for plan in (0, 1)
    )
    assert selected_first == pytest.approx(100 / 400e3 + 25 / 500e3)
    assert projected_first == pytest.approx(100 / 400e3 + 100 / 500e3)
    hosts = {"TCP": [np.array([1, 1])], "UDP": [np.array([1, 2])], "SF": [np.array([7])]}
    joined = QueryFollower(q2(urnd(STREAMS, 5)), HostCourse(hosts))
    order = ChosenPlan(("TCP", "UDP", "SF"), (0, 0, 0))
    assert many_queries.seconds(joined, order, 0) == pytest.approx((2 + 2 + 2 + 1) / 3e3)


def test_regions_split_along_borders_are_as_good_and_fewer(bench):
    drawn = grid_charts.measure(bench)
    finest = max(each.k for each in drawn if each.query == "Q1")
    regular, split = (each for each in drawn if each.query == "Q1" and each.k == finest)
    assert (regular.kind, split.kind) == (grid_charts.REGULAR, grid_charts.ADAPTIVE)
    assert regular.regions == regular.costed == finest**2
    assert split.regions < regular.regions / 10
    assert split.fidelity >= regular.fidelity - 1
    assert rows_of(grid_charts.results(drawn))


@pytest.mark.parametrize("name", [name for name in om.FIGURES if name not in ("3.2", "grid")])
def test_each_figure_runs_on_a_trace(name, trace, bench, monkeypatch):
    monkeypatch.setenv("QUERYMESH_DATA", str(trace))
    found = om.FIGURES[name](bench)
    rows = rows_of(found.results)
    assert all(row["our_value"] is not None for row in rows.values())
    assert all(math.isfinite(row["our_value"]) for row in rows.values())
    for drawing in found.drawings:
        assert all(text.startswith("<svg") for text in drawing().values())
    # Rows that cannot fail say so.
    built = {claim: row for claim, row in rows.items() if "by construction" in claim}
    assert len(built) == {"3b": 1, "4a": 1, "5.4": 3}.get(name, 0)
    assert all(row["note"].startswith("by construction") for row in built.values())
    for plans, query in enumerate(("Q1", "Q2"), 2):
        if row := built.get(f"{query}: RAND, by construction"):
            assert row["our_value"] == pytest.approx(100 / plans, abs=0.5)


@pytest.mark.parametrize("name", [name for name in om.FIGURES if name not in ("3.2", "grid")])
def test_without_the_trace_a_figure_says_so(name, tmp_path, bench, monkeypatch):
    monkeypatch.setenv("QUERYMESH_DATA", str(tmp_path))
    said = []
    rows = rows_of(om.FIGURES[name](Bench(True, said.append)).results)
    skipped = [row for row in rows.values() if row["verdict"] == "not yet"]
    assert skipped
    assert {row["note"] for row in skipped} == {"no DEC-PKT trace here"}
    assert said == ["  skipped: no DEC-PKT trace here; QUERYMESH_DATA=folder says where it is"]


def test_the_chart_of_q1_is_drawn_with_its_path():
    met = still([100, 101] * 10, [0.9] * 10 + [0.1] * 10)
    drawn = om_charts.sel_lambda(follow(q1(met), met, d=1))["figure-3a-chart"]
    assert drawn.count("after round") == 20
    assert drawn.count('r="3.2"') == 1, "one switch"
    assert "A: σ → π" in drawn
    assert "B: π → σ" in drawn


def test_om_is_among_the_papers():
    assert papers.PAPERS["om"] is om.FIGURES
    assert list(om.FIGURES) == ["3.2", "3a", "3b", "3c", "4a", "4b", "5.4", "grid", "estimates"]


def test_the_real_trace_has_an_hour_of_packets():
    folder = om.trace_folder()
    if folder is None:
        pytest.skip("no DEC-PKT trace here; QUERYMESH_DATA=folder says where it is")
    rates = om_data.rates(folder)
    assert len(rates) == 3600
    assert rates.sum() == 829_757
    assert 0.1 < variation_of(rates) < 0.26
