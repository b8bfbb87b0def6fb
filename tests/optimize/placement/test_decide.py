import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from placements import (
    BOTH,
    CATALYST,
    PYTHON,
    cases_with_kinds,
    cheapest_by_brute_force,
    costs_of,
    fits,
    placed_cases,
    transport_by_columns,
)
from profiles import profile_of, three_classes
from querymesh.cost.route_time import Overheads
from querymesh.errors import OptionError, TrainingError
from querymesh.mesh.mesh_file import mesh_from_json, mesh_to_json
from querymesh.mesh.route import route_fault
from querymesh.mesh.stages import Parts, stages_fault
from querymesh.optimize.placement.costs import placement_of, plain_us, staged_us
from querymesh.optimize.placement.decide import CLEARLY, decide
from querymesh.optimize.placement.leaf_stages import leaves_us
from querymesh.optimize.placement.worth import Job
from querymesh.optimize.train.describe import reach
from querymesh.query.parse.query import query

OVERHEADS = Overheads(node_us=0.005, ruster_us=20.0, window=10_000)
QUERY = query("SELECT * FROM t")


def decided(profile, costs, **options):
    return decide(QUERY, profile, costs, OVERHEADS, **options)


def filters(rows, rates, seed=0):
    rng = np.random.default_rng(seed)
    return profile_of(rng.random((rows, len(rates))) < rates)


def cents_us(text_us=3.0):
    """A crossing of 0.7 µs and as much again for each column."""
    return transport_by_columns([{f"c{k}"} for k in range(9)], 0.7, text_us)


# what is chosen


def test_regular_expressions_that_arrow_does_faster_run_in_the_fabric():
    costs = costs_of([BOTH] * 3, [8.0, 5.0, 6.0], [0.1, 0.06, 0.08])
    decision = decided(filters(1000, [0.7, 0.8, 0.5]), costs)
    assert decision.chosen == "fabric"
    assert decision.stages.splits == ((0, 3),)
    assert decision.expected_us < 0.4 * decision.plain_us
    assert set(decision.candidates) == {"plain", "native", "fabric"}
    assert decision.ruled_out == {"sandwich": "every operator is best off in Python"}


def test_conditions_in_a_bad_order_run_in_catalyst_in_a_better_one():
    costs = costs_of([BOTH, BOTH], [5.0, 0.5], [5.0, 0.5])
    decision = decided(filters(1000, [0.9, 0.1]), costs)
    assert decision.chosen == "native"
    assert decision.mesh.routes == ((2, 1),)
    assert decision.stages.splits == ((2, 0),)


def test_functions_that_plain_spark_evaluates_on_every_row_are_ordered():
    costs = costs_of([PYTHON, PYTHON, CATALYST], [0, 0, 0.1], [20.0, 1.0, 0])
    decision = decided(filters(1000, [0.5, 0.1, 0.9]), costs)
    assert decision.chosen == "sandwich"
    assert decision.ruled_out == {
        "native": "p1 runs in Python only",
        "fabric": "p3 runs in Catalyst only",
    }
    assert decision.stages.text(decision.mesh, 0) in {"3 > [2 > 1]", "[2 > 1] > 3"}


def test_what_cannot_gain_the_margin_runs_as_written_without_a_search():
    costs = costs_of([BOTH, BOTH], [1.0, 1.01], [9.0, 9.0])
    decision = decided(filters(1000, [0.05, 0.05]), costs)
    assert (decision.chosen, decision.stages) == ("plain", None)
    assert set(decision.candidates) == {"plain"}
    assert "no order on any engine could take less" in decision.why
    assert decision.mesh.why == decision.why
    assert decision.expected_us == decision.plain_us


def test_a_saving_below_the_margin_is_not_worth_it():
    outcomes = np.ones((4000, 2))
    outcomes[:2000, 0] = 0
    outcomes[1840:, 1] = 0  # the second drops a little more, the clairvoyant sees which
    decision = decided(profile_of(outcomes), costs_of([CATALYST] * 2, [1.0, 1.0], [0, 0]))
    assert decision.chosen == "plain"
    assert decision.candidates["native"].expected_us < decision.plain_us
    assert "less than 5% is not worth it" in decision.why


def test_a_small_sample_is_not_believed_and_asks_for_more():
    costs = costs_of([BOTH, BOTH], [2.0, 1.6], [50.0, 50.0])
    few = decided(filters(30, [0.6, 0.4], seed=3), costs)
    assert (few.chosen, few.in_doubt) == ("plain", True)
    many = decided(filters(3000, [0.6, 0.4], seed=3), costs)
    assert (many.chosen, many.in_doubt) == ("native", False)


def test_an_operator_leaves_catalyst_only_if_that_pays_at_its_lower_cost():
    profile = filters(2000, [0.5, 0.5])
    surely = costs_of([BOTH, BOTH], [2.5, 2.5], [0.1, 0.1])
    assert decided(profile, surely).chosen == "fabric"
    doubted = replace(surely, catalyst_doubt=3.0)
    assert decided(profile, doubted).chosen == "plain"
    assert not decided(profile, doubted).in_doubt, "more rows would not tell what Catalyst takes"


def test_of_two_ways_that_are_alike_the_one_without_python_is_taken():
    profile = filters(2000, [0.9, 0.001])
    costs = costs_of([BOTH, BOTH], [2.0, 0.8], [0.8, 1.0])
    decision = decided(profile, costs)
    sandwich, native = decision.candidates["sandwich"], decision.candidates["native"]
    assert sandwich.expected_us < native.expected_us < 1.01 * sandwich.expected_us
    assert decision.chosen == "native"


def test_new_workers_must_pay_for_their_start():
    profile, costs = filters(2000, [0.5, 0.5]), costs_of([BOTH, BOTH], [8.0, 8.0], [0.1, 0.1])
    start = {"python_start_s": 1.0, "parallelism": 2}
    assert decided(profile, costs, job=Job(rows=10_000, **start)).chosen == "plain"
    assert decided(profile, costs, job=Job(rows=10_000_000, **start)).chosen == "fabric"


def test_workers_that_plain_spark_needs_too_cost_nothing_more():
    costs = costs_of([PYTHON, PYTHON], [0, 0], [8.0, 1.0])
    job = Job(rows=10_000, python_start_s=1.0)
    assert decided(filters(2000, [0.5, 0.1]), costs, job=job).chosen == "fabric"


def test_a_job_that_reads_for_long_is_not_changed_for_little():
    profile, costs = filters(2000, [0.9, 0.1]), costs_of([CATALYST] * 2, [1.0, 0.5], [0, 0])
    assert decided(profile, costs).chosen == "native"
    assert decided(profile, costs, job=Job(other_us=30.0)).chosen == "plain"


def test_no_placement_means_plain_spark():
    after = [frozenset(), frozenset({1}), frozenset({1, 2})]
    profile = profile_of(np.tile([0, 1, 1], (200, 1)), after=after)
    costs = costs_of([PYTHON, CATALYST, PYTHON], [0, 50.0, 0], [1.0, 0, 60.0])
    decision = decided(profile, costs)
    assert decision.chosen == "plain"
    assert "between two Python functions" in decision.ruled_out["sandwich"]


@pytest.mark.parametrize("shape", [(0, 3), (5, 0)])
def test_without_rows_or_conditions_it_runs_as_written(shape):
    costs = costs_of([BOTH] * shape[1], [1.0] * shape[1], [1.0] * shape[1])
    decision = decided(profile_of(np.ones(shape)), costs)
    assert decision.chosen == "plain"
    assert decision.why.endswith("it runs as written")


# meshes with stages


def kinds(rows=3000, seed=0):
    """Kind a is dropped by p1, kind b by p3; p2 drops hardly anything."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, rows)
    rates = np.array([[0.02, 0.9, 0.95], [0.95, 0.9, 0.02]])
    sample = pa.table({"kind": pa.array(np.array(["a", "b"])[kind])})
    return profile_of(rng.random((rows, 3)) < rates[kind], sample=sample)


def test_each_kind_of_tuples_gets_its_own_order_in_catalyst():
    costs = costs_of([CATALYST] * 3, [3.0, 4.0, 3.0], [0, 0, 0])
    decision = decided(kinds(), costs)
    assert decision.chosen == "native"
    assert {route[0] for route in decision.mesh.routes} == {1, 3}
    assert decision.stages.splits == ((3, 0), (3, 0))
    assert decision.expected_us < decision.candidates["native"].single_us


def test_a_leaf_whose_tuples_catalyst_drops_sends_none_to_python():
    """Kind a is best dropped by p1, in Catalyst; kind b by p3, which is cheap in Python only."""
    costs = costs_of([BOTH, BOTH, BOTH], [1.0, 9.0, 9.0], [0.9, 0.1, 0.1], cents_us(0.1))
    decision = decided(kinds(), costs)
    assert decision.chosen == "sandwich"
    ends = [int(rows[0]) for rows in reach(kinds(), decision.mesh.tree)]
    parts = {
        str(kinds().sample["kind"][row]): each
        for row, each in zip(ends, decision.stages.parts(decision.mesh), strict=True)
    }
    assert parts["a"].before == (1,)
    assert parts["b"].before == ()
    assert parts["b"].python[0] == 3
    assert not decision.stages.is_alike(decision.mesh)
    assert decision.expected_us < 0.9 * decision.single_us


def test_a_mesh_is_not_worth_columns_that_are_dear_to_send():
    def transport_us(operators, columns):
        return 0.5 + 40.0 * len(columns)

    costs = costs_of([PYTHON] * 3, [0] * 3, [6.0, 8.0, 6.0], transport_us)
    decision = decided(kinds(), costs)
    assert decision.mesh.is_single
    assert "it saves nothing for sure" in decision.mesh.why
    cheap = costs_of([PYTHON] * 3, [0] * 3, [6.0, 8.0, 6.0])
    assert not decided(kinds(), cheap).mesh.is_single


def test_policy_single_trains_no_mesh():
    costs = costs_of([CATALYST] * 3, [3.0, 4.0, 3.0], [0, 0, 0])
    assert decided(kinds(), costs, one_route=True).mesh.is_single


CASES = st.one_of(placed_cases(most_rows=60), cases_with_kinds())


@given(CASES)
@settings(max_examples=150, deadline=None)
def test_a_decision_costs_no_more_than_plain_spark_and_any_engine_that_is_sure_to_save(case):
    profile, costs = case
    decision = decided(profile, costs)
    assert decision.expected_us <= decision.plain_us + 1e-9
    assert decision.bound_us <= decision.expected_us + 1e-9
    if decision.chosen != "plain":
        others = decision.candidates.values()
        most_us = 1e-9 + (CLEARLY * decision.plain_us if decision.chosen == "native" else 0.0)
        cheaper = [e for e in others if e.expected_us + most_us < decision.expected_us]
        assert not any(each.saving.is_certain for each in cheaper)
        assert decision.in_doubt or not any(each.saving.in_doubt for each in cheaper)
        assert decision.expected_us <= decision.single_us + most_us or cheaper
        best_us = cheapest_by_brute_force(profile, costs)
        assert decision.single_us == pytest.approx(best_us)


@given(CASES)
@settings(max_examples=150, deadline=None)
def test_every_mesh_keeps_its_stages_and_its_figures(case):
    profile, costs = case
    for candidate in decided(profile, costs).candidates.values():
        mesh, stages = candidate.mesh, candidate.mesh.stages
        assert [operator.after for operator in mesh.operators] == list(profile.after)
        assert all(route_fault(route, profile.after) == "" for route in mesh.leaf_routes)
        if stages is None:
            assert candidate.name == "plain"
            continue
        assert stages_fault(stages, mesh.leaf_routes) == ""
        parts = stages.parts(mesh)
        assert all(fits(placement_of(each), costs, profile.after) for each in parts)
        assert {len(each.route) for each in parts} == {profile.operators}
        assert mesh.expected_us == candidate.expected_us
        assert mesh.single_us == candidate.single_us
        leaf_us = sum(leaf.share * leaf.route_us for leaf in mesh.leaves)
        assert leaf_us == pytest.approx(leaves_us(profile, costs, mesh.tree, parts).mean())
        assert leaf_us <= mesh.expected_us + 1e-9
        again = mesh_from_json(mesh_to_json(mesh), asked=QUERY)
        assert (again.stages, again.leaf_routes) == (stages, mesh.leaf_routes)


@pytest.mark.parametrize("wanted", ["native", "fabric", "sandwich", "plain"])
def test_the_cases_above_lead_to_every_engine(wanted):
    find(
        cases_with_kinds(),
        lambda case: decided(*case).chosen == wanted,
        settings=settings(phases=[Phase.generate], max_examples=400, deadline=None),
    )


def test_plain_spark_runs_every_function_on_each_row_that_catalyst_leaves():
    profile = profile_of([[1, 1, 0], [0, 1, 1], [1, 0, 1]])
    costs = costs_of([CATALYST, PYTHON, PYTHON], [2.0, 0, 0], [[0, 10.0, 30.0], [0, 20.0, 40.0]])
    crossing = 0.7 + 2 * 0.3
    expected = [2 + crossing + 20 + 30, 2, 2 + crossing + 10 + 40]
    assert plain_us(profile, costs).tolist() == pytest.approx(expected)


def test_costs_that_cannot_be_are_refused():
    one = np.ones(1)
    with pytest.raises(TrainingError, match=r"the operators \[2\] can run nowhere"):
        costs_of([BOTH, BOTH], [1.0, math.inf], [1.0, math.inf])
    with pytest.raises(TrainingError, match="costs of 1, 1, 2 operators"):
        replace(costs_of([BOTH], one, one), python_pass_us=np.ones(2))
    with pytest.raises(TrainingError, match="negative or not a number"):
        costs_of([BOTH], -one, one)
    with pytest.raises(TrainingError, match="a factor from 1, not"):
        costs_of([BOTH], one, one, doubt=0.5)
    with pytest.raises(TrainingError, match="costs of 1 operators do not fit a profile of 3"):
        decided(three_classes(30), costs_of([BOTH], one, one))
    with pytest.raises(OptionError, match="parallelism is at least 1"):
        Job(parallelism=0)


def test_a_route_in_parts_costs_what_its_rows_meet():
    profile = profile_of([[1, 1, 1], [0, 1, 1], [1, 0, 1]])
    costs = costs_of([BOTH, BOTH, BOTH], [1.0, 2.0, 4.0], [[10, 20, 40], [11, 21, 41]])
    us = staged_us(profile, costs, Parts((1,), (2,), (3,)), 100.0)
    assert us.tolist() == [1 + 100 + 21 + 4, 1, 1 + 100 + 20]
    us = staged_us(profile, costs, Parts((1, 2, 3), (), ()), 100.0)
    assert us.tolist() == [7 + 100, 1, 3]


def drawn_at_random(seed):
    """Kinds of tuples with pass rates, costs and engines of any size: rows to draw, and costs."""
    rng = np.random.default_rng(seed)
    operators, count = int(rng.integers(2, 7)), int(rng.integers(1, 5))
    rates = rng.choice([0.02, 0.3, 0.6, 0.9, 0.98], (count, operators))
    costs = costs_of(
        rng.choice([CATALYST, PYTHON, BOTH, BOTH], operators),
        rng.choice([0.02, 0.3, 2.0, 8.0], operators),
        rng.choice([0.05, 0.2, 2.0, 10.0], operators),
        transport_by_columns([{f"c{k}"} for k in rng.integers(0, 4, operators)]),
    )

    def draw(rows):
        kind = rng.integers(0, count, rows)
        names = pa.array(np.array(list("abcd"))[kind])
        sample = pa.table({"kind": names, "noise": rng.normal(size=rows)})
        return profile_of(rng.random((rows, operators)) < rates[kind], sample=sample)

    return draw, costs


@pytest.mark.parametrize("rows", [30, 200, 1000])
def test_what_is_chosen_from_a_sample_beats_plain_spark_on_other_tuples(rows):
    beaten = 0
    for seed in range(40):
        draw, costs = drawn_at_random(seed)
        decision = decided(draw(rows), costs)
        if decision.chosen != "plain":
            others = draw(5000)
            parts = decision.stages.parts(decision.mesh)
            ours_us = leaves_us(others, costs, decision.mesh.tree, parts).mean()
            assert ours_us < plain_us(others, costs).mean()
            beaten += 1
    assert beaten > 10
