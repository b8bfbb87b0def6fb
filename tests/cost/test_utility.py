import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querymesh.cost.plan_tree import (
    Aggregate,
    Join,
    Project,
    Select,
    Source,
    plan_text,
    sources_of,
)
from querymesh.cost.rates import TupleRates, cost_at
from querymesh.cost.utility import (
    Costs,
    Statistics,
    Weights,
    capped_costs,
    operator_costs,
    plan_costs,
    sustained_costs,
    utility,
)
from querymesh.errors import OptionError, QueryMeshError, TrainingError, UnsupportedError

FIGURE_2 = Statistics({"s": 500.0}, {"o1": 0.5, "o2": 0.1}, window_s=1.0)
P1 = Select(Select(Source("s"), ("o1",), 1 / 500), ("o2",), 1 / 50)
P2 = Select(Select(Source("s"), ("o2",), 1 / 50), ("o1",), 1 / 500)

RATE = st.floats(0.1, 1e4)
SHARE = st.just(0.0) | st.floats(1e-9, 1)
TPR = st.floats(10, 1e6)


def test_section_3_2_rates_and_memory_of_both_plans():
    assert capped_costs(P1, FIGURE_2) == (5.0, 775.0)
    assert capped_costs(P2, FIGURE_2) == (2.5, 575.0)


def test_section_3_2_memory_is_what_a_window_brings_and_leaves():
    known = Statistics({"s": 500.0}, {"o1": 0.5, "o2": 0.1}, window_s=3.0)
    assert capped_costs(P1, known) == (5.0, 3 * 775.0)
    grouped = Select(Source("s"), ("o1", "o2"), 1 / 100)
    assert capped_costs(Project(grouped, 1 / 2), known) == (2.0, 3 * (500 + 25 + 25))


@pytest.mark.parametrize(
    ("weights", "utils", "better"),
    [(Weights(0.1, 0.9), (697.52, 517.54), P2), (Weights(20_000, 2), (5550, 9150), P1)],
)
def test_section_3_2_weights_choose_the_plan(weights, utils, better):
    costs = [float(utility(capped_costs(plan, FIGURE_2), weights)) for plan in (P1, P2)]
    assert costs == pytest.approx(utils)
    assert (P1, P2)[int(np.argmin(costs))] is better


def test_section_4_1_gives_other_numbers_for_the_same_example():
    first, second = plan_costs(P1, FIGURE_2), plan_costs(P2, FIGURE_2)
    assert first == (25.0, (500 * 500 / 500 + 250) + (250 * 250 / 50 + 25))
    assert second == (25.0, (500 * 500 / 50 + 50) + (50 * 50 / 500 + 25))


def test_section_3_2_has_no_joins():
    join = Join(Source("s"), Source("t"), ("j",), TupleRates(1, 1))
    with pytest.raises(UnsupportedError, match="plan_costs knows all"):
        capped_costs(join, FIGURE_2)


def test_section_4_1_each_operator_by_hand():
    known = Statistics({"L": 100.0, "R": 300.0}, {"p": 0.2, "j": 0.01}, window_s=2.0)
    selected = Select(Source("L"), ("p",), 1 / 1000)
    joined = Join(selected, Project(Source("R"), 1 / 500), ("j",), TupleRates(50, 25))
    root, join, selection, projection = operator_costs(Aggregate(joined, 1 / 400), known)
    assert selection[1:] == (20.0, 100 * 100 * 2 / 1000, 40.0)
    assert projection[1:] == (300.0, 300 * 300 * 2 / 500, 600.0)
    busy = 20 / 50 + 300 / 25
    rate = 0.01 * 20 * 300 * 2 / busy
    assert join[1:] == pytest.approx((rate, 160 * 2 * busy / 2, rate * 2))
    assert root[1:] == pytest.approx((400 / (rate * 2), rate * rate * 2 / 400, 400 / rate))
    costs = plan_costs(Aggregate(joined, 1 / 400), known)
    assert costs.rate == root.rate
    assert costs.memory == pytest.approx(
        sum(each.memory for each in (root, join, selection, projection))
    )


def test_a_sustained_join_gives_out_by_the_second_that_passes():
    def rate(tpr):
        known = Statistics({"L": 100.0, "R": 300.0}, {"j": 0.01}, window_s=2.0)
        plan = Join(Source("L"), Source("R"), ("j",), TupleRates(tpr, tpr))
        return sustained_costs(plan, known).rate, plan_costs(plan, known).rate

    made = 0.01 * 100 * 300 * 2
    assert rate(4000) == pytest.approx((made, made * 10)), "busy a tenth of the time"
    assert rate(100) == pytest.approx((made / 4, made / 4)), "four times too busy"
    plan = Select(Source("s"), ("o1",), 1 / 500)
    assert sustained_costs(plan, FIGURE_2) == plan_costs(plan, FIGURE_2)
    assert sustained_costs(Source("s"), FIGURE_2) == (500.0, 0.0)


def test_section_4_1_operators_are_counted_breadth_first():
    known = Statistics(dict.fromkeys("abc", 10.0), {}, 1.0)
    below = Join(Source("b"), Project(Source("c"), name="π2"), 0.1)
    left = Select(Select(Source("a"), 0.5, name="σ2"), 0.5, name="σ1")
    root = Project(Join(left, below, 0.1), name="π1")
    found = [cost.operator for cost in operator_costs(root, known)]
    assert found == [root, root.child, left, below, left.child, below.right]


def test_a_join_waits_by_the_width_of_what_comes():
    """Of 100 rows a second from the left half of the bytes are kept, of those from the right all;
    the result is as wide as the mean of its streams."""
    known = Statistics({"L": 100.0, "R": 300.0}, {}, window_s=2.0)
    left = Project(Source("L"), 1 / 1000, keeps=0.5)
    plan = Join(left, Source("R"), 0.01, TupleRates(1000, 500))
    join, _ = operator_costs(plan, known)
    busy = 100 / 1000 + 300 / 500
    assert join.input_buffer == pytest.approx((100 * 0.5 + 300) / 2 * 2 * busy / 2)
    assert join.queue == pytest.approx(join.rate * (0.5 + 1) / 2 * 2)
    two = Join(plan, Source("M", 10.0), 0.01, TupleRates(1000, 500))
    root = operator_costs(two, known)[0]
    assert root.queue == pytest.approx(root.rate * (0.5 + 1 + 1) / 3 * 2)


def test_a_join_of_equally_fast_sides_waits_as_its_mean_rate_says():
    known = Statistics({"L": 100.0, "R": 300.0}, {"j": 0.01}, window_s=1.0)
    plan = Join(Source("L"), Source("R"), ("j",), TupleRates(3000, 3000))
    (join,) = operator_costs(plan, known)
    assert join.input_buffer == pytest.approx(200 * 200 / 3000)


def orders(tpr_select, tpr_project, keeps=1.0):
    def select(tree):
        return Select(tree, ("a",), 1 / tpr_select)

    def project(tree):
        return Project(tree, 1 / tpr_project, keeps=keeps)

    stream = Source("s")
    first = project(select(stream))
    second = select(project(stream))
    return first, second


@given(RATE, SHARE, TPR, TPR, st.floats(0.1, 600))
def test_by_section_4_1_a_projection_never_pays_before_a_selection(rate, share, fast, slow, window):
    known = Statistics({"s": rate}, {"a": share}, window)
    first, second = (plan_costs(plan, known) for plan in orders(fast, slow))
    assert first.rate == second.rate
    assert first.memory <= second.memory * (1 + 1e-12)


def test_a_projection_that_keeps_little_pays_before_a_selection_that_drops_little():
    for share, better in ((0.1, 0), (0.9, 1)):
        known = Statistics({"s": 500.0}, {"a": share}, 1.0)
        memory = [float(plan_costs(plan, known).memory) for plan in orders(4e5, 5e5, keeps=0.4)]
        assert int(np.argmin(memory)) == better


@given(
    st.lists(st.tuples(RATE, RATE, SHARE), min_size=1, max_size=5),
    st.tuples(TPR, TPR, TPR),
    st.floats(0.1, 60),
)
def test_many_points_cost_what_each_costs_alone(points, rates, window):
    left = Select(Source("L"), ("a",), 1 / rates[0])
    joined = Join(left, Source("R"), ("j",), TupleRates(rates[1], rates[2]))
    plan = Aggregate(joined, 1 / rates[2])
    columns = np.array(points).T
    together = Statistics({"L": columns[0], "R": columns[1]}, {"a": columns[2], "j": 0.1}, window)
    utils = utility(plan_costs(plan, together), Weights(0.4, 0.6))
    for (one, other, share), utils_together in zip(points, utils, strict=True):
        alone = Statistics({"L": one, "R": other}, {"a": share, "j": 0.1}, window)
        assert utility(plan_costs(plan, alone), Weights(0.4, 0.6)) == pytest.approx(utils_together)


def test_nothing_comes_of_nothing():
    silent = Statistics({"L": 0.0, "R": 0.0}, {"j": 0.5}, 1.0)
    plan = Aggregate(Join(Source("L"), Source("R"), ("j",), TupleRates(10, 10)), 1 / 10)
    assert plan_costs(plan, silent) == (0.0, 0.0)
    assert utility(plan_costs(plan, silent), Weights(1, 1)) == np.inf
    assert utility(plan_costs(plan, silent), Weights(0, 1)) == 0.0


def test_a_stream_as_it_is_costs_no_memory():
    assert plan_costs(Source("s"), FIGURE_2) == (500.0, 0.0)


@pytest.mark.parametrize("weights", [(-1, 1), (1, -0.1), (float("nan"), 1), (float("inf"), 0)])
def test_a_weight_below_zero_or_without_a_value_is_refused(weights):
    with pytest.raises(OptionError, match="finite number from 0 on"):
        Weights(*weights)


def test_weights_that_are_all_zero_are_refused():
    with pytest.raises(OptionError, match="every plan would cost the same"):
        Weights(0, 0)


def test_what_is_not_known_is_named():
    with pytest.raises(TrainingError, match=r"arrival rate of t is not known.*Known: s"):
        plan_costs(Source("t"), FIGURE_2)
    with pytest.raises(TrainingError, match=r"selectivity of o3 is not known.*Known: o1, o2"):
        plan_costs(Select(Source("s"), ("o3",), 1), FIGURE_2)


def test_statistics_are_numbers_from_zero_on():
    with pytest.raises(TrainingError, match="arrival rate of s"):
        Statistics({"s": -1.0}, {}, 1.0)
    with pytest.raises(TrainingError, match="selectivity of p"):
        Statistics({}, {"p": np.array([0.5, np.nan])}, 1.0)
    with pytest.raises(QueryMeshError, match="longer than 0 seconds"):
        Statistics({}, {}, 0.0)


def test_operators_are_checked_when_they_are_built():
    with pytest.raises(QueryMeshError, match="selection processes more than 0"):
        Select(Source("s"), ("a",), cost_at("selection", 0))
    with pytest.raises(QueryMeshError, match="join processes more than 0"):
        Join(Source("s"), Source("t"), ("a",), TupleRates(1, float("nan")))
    with pytest.raises(QueryMeshError, match=r"at most 1, not 1\.5"):
        Project(Source("s"), 1, keeps=1.5)


def test_a_plan_is_written_in_the_papers_signs():
    joined = Join(Select(Source("TCP"), ("b",)), Source("UDP"), ("a",))
    plan = Aggregate(Join(joined, Project(Source("SF")), ("c",)))
    assert plan_text(plan) == "Ω((σ(TCP) ⋈ UDP) ⋈ π(SF))"
    assert [source.name for source in sources_of(plan)] == ["TCP", "UDP", "SF"]


@given(st.floats(0.1, 100), st.floats(1, 1e4), st.floats(0.1, 100), st.floats(1, 1e4))
def test_one_weight_alone_chooses_by_one_cost_alone(rate, memory, other_rate, other_memory):
    one = Costs(np.array(rate), np.array(memory))
    other = Costs(np.array(other_rate), np.array(other_memory))
    by_rate = [utility(costs, Weights(1, 0)) for costs in (one, other)]
    by_memory = [utility(costs, Weights(0, 1)) for costs in (one, other)]
    assert (by_rate[0] < by_rate[1]) <= (rate > other_rate)
    assert (by_memory[0] < by_memory[1]) == (memory < other_memory)
