import json

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querymesh.cost.plan_tree import join_shape
from querymesh.optimize.rate.curves import Curve, predicted
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.measure import RivalsDisagreeError
from querymesh_lab.papers import papers
from querymesh_lab.papers.rate import paper_plans, plan_race, rate, rate_figures
from querymesh_lab.papers.rate.plan_race import AGAIN, PlanRace, agreed, whole_tree_count
from querymesh_lab.papers.rate.poisson_rows import DrawnPlan
from querymesh_lab.papers.rate.threaded_run import StopRule, done_at_s, run_plan

SMALL = paper_plans.Scale(faster=400, fewer=200)


def rows_of(results):
    rows = json.loads(json.dumps([result.as_row("a command") for result in results]))
    assert rows
    assert {row["paper"] for row in rows} == {"rate"}
    return {row["claim"]: row for row in rows}


@given(st.lists(st.floats(0, 100), max_size=30).map(sorted), st.floats(0, 5), st.floats(0, 100))
def test_rows_are_done_one_after_the_other(arrivals_s, cost_s, busy_until_s):
    expected, free_s = [], busy_until_s
    for arrival_s in arrivals_s:
        free_s = max(free_s, arrival_s) + cost_s
        expected.append(free_s)
    found = done_at_s(np.array(arrivals_s), cost_s, busy_until_s)
    assert found == pytest.approx(np.array(expected))


@pytest.mark.parametrize(
    "scale",
    [paper_plans.Scale(faster=5), paper_plans.Scale(fewer=20), paper_plans.Scale(4, 50)],
    ids=str,
)
def test_a_scaled_plan_has_the_papers_curve(scale):
    for name, tree in paper_plans.five_way(scale).items():
        paper, ours = predicted(paper_plans.five_way()[name]), predicted(tree)
        for results in (5_000, 20_000, 0.9 * paper.total):
            assert ours.time_of(results / scale.fewer) * scale.time == pytest.approx(
                paper.time_of(results), rel=0.01
            )


def test_every_plan_gets_the_same_rows_and_they_match_as_often_as_the_paper_says():
    query = paper_plans.paper_query(paper_plans.FIVE_DELAYS_S)
    plans = [DrawnPlan(query, tree, 200) for tree in paper_plans.five_way().values()]
    tables = {s.name: plans[0].rows_of(s).table for s in query.streams}
    for plan in plans[1:]:
        assert all(plan.rows_of(s).table.equals(tables[s.name]) for s in query.streams)
    oracle = duckdb.connect()
    for each in query.predicates:
        one, other, key = tables[each.left], tables[each.right], f"{each.left}{each.right}".lower()
        oracle.register("one", one).register("other", other)
        ((pairs,),) = oracle.sql(f"SELECT count(*) FROM one JOIN other USING ({key})").fetchall()
        assert pairs / one.num_rows / other.num_rows == pytest.approx(each.selectivity, rel=0.05)


def test_rows_arrive_at_their_streams_rate_and_a_longer_run_has_those_of_a_shorter_one():
    query = paper_plans.paper_query(paper_plans.THREE_DELAYS_S)
    tree = paper_plans.three_way()[paper_plans.AB_FIRST]
    for source in query.streams:
        short, long = (DrawnPlan(query, tree, seconds).rows_of(source) for seconds in (40, 60))
        came = np.searchsorted(short.arrivals_s, 40)
        assert came == pytest.approx(min(40 * source.rate, source.size), rel=0.1)
        assert long.table.slice(0, short.table.num_rows).equals(short.table)


@pytest.mark.parametrize("name", [paper_plans.OTHER, paper_plans.EVENLY])
def test_a_plan_run_to_its_end_makes_what_duckdb_makes(spark, name):
    query, tree = (
        paper_plans.paper_query(paper_plans.FIVE_DELAYS_S, SMALL),
        paper_plans.five_way(SMALL)[name],
    )
    plan = DrawnPlan(query, tree, 60)
    oracle = duckdb.connect()
    for source in query.streams:
        oracle.register(source.name, plan.rows_of(source).table)
    ((expected,),) = oracle.sql(
        "SELECT count(*) FROM A JOIN B USING (ab) JOIN C USING (ac) JOIN D USING (bd) "
        "JOIN E USING (de)"
    ).fetchall()
    ran = run_plan(spark, query, tree, StopRule(60))
    assert ran.ended
    assert ran.made[-1] == expected > 10_000
    assert ran.times_s == sorted(ran.times_s)
    assert ran.times_s[-1] > predicted(tree).times_s[0]
    assert whole_tree_count(spark, query, tree) == expected


def test_a_run_stops_when_it_has_enough_results(spark):
    scale = paper_plans.Scale(faster=100)
    query, tree = (
        paper_plans.paper_query(paper_plans.THREE_DELAYS_S, scale),
        paper_plans.three_way(scale)[paper_plans.AC_FIRST],
    )
    ran = run_plan(spark, query, tree, StopRule(60, results=50))
    assert ran.made[-1] >= 50
    assert not ran.ended


def test_shapes_are_those_of_the_trees():
    trees = paper_plans.five_way()
    assert join_shape(trees[paper_plans.DEEP]) == (((("A", "C"), "B"), "D"), "E")
    assert join_shape(trees[paper_plans.EVENLY]) == ((("B", "D"), "E"), ("A", "C"))
    assert trees.keys() == paper_plans.FIVE_PLANS.keys()


def curve(*points, ends=False):
    times_s, made = zip(*points, strict=True)
    return Curve(np.array(times_s, float), np.array(made, float), ends)


def raced():
    early = curve((0, 0), (10, 1_000), (20, 1_500))
    late = curve((0, 0), (5, 100), (20, 3_000))
    return PlanRace(
        paper_plans.Scale(),
        expected={"early": early, "late": late},
        measured={"early": early, "late": late, AGAIN: curve((0, 0), (6, 100), (24, 3_000))},
        control="late",
    )


def test_the_crossing_is_where_the_second_plan_takes_the_lead_for_good():
    assert raced().overtaken("early", "late", measured=True) == pytest.approx(6_500 / 7)
    assert raced().overtaken("late", "early", measured=True) is None


def test_a_plan_that_was_stopped_before_gives_a_lower_bound():
    predicted_row, row = raced().pair(("7", "8"), "early", "late", 2_900)
    assert predicted_row.our_value is None
    assert row.our_value == pytest.approx(20 / 19.48, rel=0.01)
    assert "lower bound" in row.note
    assert row.a_a == pytest.approx(1.2, rel=0.01)
    _, row = raced().pair(("7", "8"), "early", "late", 1e6)
    assert row.our_value is None
    assert "not reached" in row.note


def test_plans_that_disagree_are_not_compared(monkeypatch):
    monkeypatch.setattr(plan_race, "whole_tree_count", lambda *_: 3_000)
    found = raced()
    assert agreed(Bench(start=lambda: None), None, {"early": None}, found) == 3_000
    found.measured["late"] = curve((0, 0), (9, 2_999), ends=True)
    with pytest.raises(RivalsDisagreeError, match="late, streamed"):
        agreed(Bench(start=lambda: None), None, {"early": None}, found)


def test_figure_1_is_exact(spark, monkeypatch):
    monkeypatch.setattr(rate_figures, "_selected", lambda bench, order: (5.0, 1.0))
    rows = rows_of(rate.FIGURES["1"](Bench(quick=True, start=lambda: spark)).results)
    assert rows["σ1 first: outputs a second"]["our_value"] == 0.5
    assert rows["σ2 first: outputs a second"]["our_value"] == 5.0


def test_selections_in_either_order_are_run_and_the_fast_one_first_gives_more(spark):
    seen = {}
    for order in ("σ1 first", "σ2 first"):
        made, in_s = rate_figures._selected(Bench(quick=True, start=lambda: spark), order)
        seen[order] = made / in_s
    assert seen["σ2 first"] > 2 * seen["σ1 first"]


def test_table_3_tells_the_costs_of_this_machine_and_what_was_measured():
    said = []
    (row,) = rows_of(rate.FIGURES["table-3"](Bench(quick=True, log=said.append)).results).values()
    assert row["verdict"] == "direction"
    assert "slopes between two sizes" in row["note"]
    costs_us = row["details"]["costs_us"]
    assert costs_us.keys() == {"move", "comp", "hash", "probe"}
    assert all(cost_us > 0 for cost_us in costs_us.values())
    assert [line.split()[0] for line in said[:4]] == [*costs_us]


def test_predicted_plans_of_five_cross_where_the_paper_allows_it():
    rows = rows_of(rate_figures.predicted_of_five(Bench(quick=True)))
    crossing = rows["predicted: results when Fast Leaves overtakes Left Deep"]
    assert crossing["our_value"] == pytest.approx(625, rel=0.01)
    assert crossing["verdict"] == "exceeds"
    assert "at 2,719 s; Left Deep leads from 24 results on" in crossing["note"]
    never = rows["predicted: crossings of Evenly Spread with the other two"]
    assert (never["our_value"], never["verdict"]) == (0, "exceeds")


def test_with_the_other_fast_leaves_the_order_of_the_paper_is_not_predicted():
    rows = rows_of(rate_figures.predicted_of_five(Bench(quick=True)))
    other = [row for claim, row in rows.items() if "other Fast Leaves over" in claim]
    assert [row["verdict"] for row in other] == ["contradicts", "contradicts"]
    assert {row["figure"] for row in other} == {"14"}
    assert "after 175 s" in other[0]["note"]
    assert "Evenly Spread after 209 s" in other[0]["note"]


def test_table_6_left_deep_is_worst_in_both_models_and_the_rest_says_why():
    rows = rows_of(rate.FIGURES["table-6"](Bench(quick=True)).results)
    for kind in ("traditional", "rate-based"):
        assert rows[f"{kind} estimate, Left Deep over Evenly Spread"]["verdict"] == "overshoots"
    assert rows["rate-based estimate, Fast Leaves over Evenly Spread"]["verdict"] == "overshoots"
    wrong = rows["traditional estimate, Fast Leaves over Evenly Spread"]
    assert wrong["verdict"] == "contradicts"
    assert "ten million rows" in wrong["note"]


def test_the_paper_is_known_by_its_name():
    assert papers.PAPERS["rate"] is rate.FIGURES
