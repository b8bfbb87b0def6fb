"""The planner of policy "chart" on rounds made by hand: no Spark."""

import math
from itertools import combinations, pairwise
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import querymesh as qm
from join_feed import SCHEMA
from querymesh.cost.utility import DEFAULT_WEIGHTS, Weights
from querymesh.errors import OptionError, QueryMeshError
from querymesh.optimize.chart.chart_planner import ChartPlanner
from querymesh.optimize.chart.charting import (
    Charting,
    checked_weights,
    weights_from,
)
from querymesh.optimize.chart.observed import PairSelectivity
from querymesh.optimize.chart.plan_shape import (
    Condition,
    conditions_of,
    kept_share,
    probe_orders,
    shape_of,
)
from querymesh.optimize.planning.planner import PairStats, Round
from querymesh.policies.chart import Chart
from querymesh.policies.mesh import Mesh
from querymesh.policies.rate import Rate
from querymesh.query.bind.windowed_join import bind_join
from querymesh.query.join import JoinQuery
from querymesh.query.model import Probe

WITH_TEXT = SCHEMA.append(pa.field("text", pa.string()))
CHAIN = "a.k = b.k AND b.x = c.x"
CLIQUE = "a.k = b.k AND b.k = c.k"


def join_of(where: str = CLIQUE, windows=("5 SECONDS",) * 3, tables: str = "") -> JoinQuery:
    streams = ", ".join(
        f"{name.upper()} {name} [{'ROWS ' if size.isdigit() else 'RANGE '}{size}]"
        for name, size in zip("abcdefg", windows, strict=False)
    )
    statics = "".join(f", {name.upper()} {name}" for name in tables)
    columns = ", ".join(f"{name}.id AS {name}" for name in "abcdefg"[: len(windows)])
    asked = qm.query(f"SELECT {columns} FROM {streams}{statics} WHERE {where}", time="ts")
    return bind_join(asked, {r.name: WITH_TEXT for r in asked.relations})


class World:
    """Rounds of a world with these selectivities between streams; every stream asks every other."""

    def __init__(self, join: JoinQuery, selectivities=None, passes=None, window_s=5.0) -> None:
        self.join, self.window_s = join, window_s
        self.selectivities = selectivities or {}
        self.passes = passes or {}
        self.number = 0

    def round(self, seconds=1.0, keys=None, **rates) -> Round:
        arrived = {alias: round(rate * seconds) for alias, rate in rates.items()}
        passed = {a: round(n * self.passes.get(a, 1.0)) for a, n in arrived.items()}
        met = {}
        for source in rates:
            for other in rates:
                pair = "".join(sorted((source, other)))
                stored = rates[other] * self.passes.get(other, 1.0) * self.window_s
                found = passed[source] * stored * self.selectivities.get(pair, 0.01)
                if source != other and pair in self.selectivities:
                    met[source, other] = PairStats(
                        passed[source], round(found), stored, passed[source]
                    )
        self.number += 1
        own = {alias: arrived[alias] / 4e5 for alias in self.passes}
        stored_rows = {alias: round(rate * self.window_s) for alias, rate in rates.items()}
        return Round(
            self.number, seconds, 0.1, arrived, passed, own, met, stored_rows, 7, keys or {}
        )


def run_of(planner, world, rounds, **rates):
    return [planner.observe(world.round(**rates)) for _ in range(rounds)]


ALL = {"ab": 0.01, "ac": 0.01, "bc": 0.01}


def test_the_orders_stay_as_written_until_enough_rounds_were_observed():
    join = join_of()
    planner, world = ChartPlanner(join, Charting(settle=3)), World(join, ALL)
    first = run_of(planner, world, 3, a=50, b=100, c=400)
    assert first[:2] == [None, None]
    assert first[2].orders == {"a": ("b", "c"), "b": ("a", "c"), "c": ("a", "b")}
    assert "(a ⋈ b) ⋈ c" in first[2].reason
    assert run_of(planner, world, 5, a=50, b=100, c=400) == [None] * 5


def test_only_what_the_engine_runs_is_counted():
    """The share that a stream's condition passes swings, and with it the best order of its σ and π,
    which is the model's alone. The order of the streams stays."""
    join = join_of(f"{CLIQUE} AND a.id > 1")
    world = World(join, ALL, {"a": 0.05})
    planner = ChartPlanner(join, Charting(settle=1, rounds=1))
    for number in range(24):
        world.passes["a"] = 0.05 if number % 6 < 3 else 0.95
        planner.observe(world.round(a=20, b=200, c=400))
    assert "a" in planner.rounds.query.stream_charts
    assert planner.rounds.switches == sum(step.switched for step in planner.steps)
    assert planner.rounds.moves == sum(step.moved for step in planner.steps)
    assert planner.rounds.judged == 23
    assert planner.rounds.fidelity == 1


def test_a_plan_follows_the_rates_and_what_did_not_change_is_not_said_again():
    join = join_of()
    planner, world = ChartPlanner(join), World(join, ALL)
    run_of(planner, world, 10, a=50, b=100, c=400)
    decisions = [d for d in run_of(planner, world, 20, a=400, b=100, c=50) if d]
    assert decisions[-1].orders == {"a": ("b", "c"), "b": ("c", "a"), "c": ("b", "a")}
    assert "(b ⋈ c) ⋈ a" in decisions[-1].reason
    assert planner.rounds.switches == len(decisions) >= 1
    assert planner.rounds.moves >= planner.rounds.switches
    assert planner.rounds.rounds == 29
    assert 0.5 < planner.rounds.fidelity < 1
    assert [step.after_round for step in planner.steps] == list(range(2, 31))


def test_the_least_selective_pair_comes_first_at_equal_rates():
    for pair, first in (("ab", {"a", "b"}), ("ac", {"a", "c"}), ("bc", {"b", "c"})):
        join = join_of()
        planner = ChartPlanner(join)
        world = World(join, {**dict.fromkeys(ALL, 0.05), pair: 0.001})
        decision = run_of(planner, world, 2, a=100, b=100, c=100)[1]
        assert set(planner.rounds.chosen.order[:2]) == first
        third = ({"a", "b", "c"} - first).pop()
        assert {decision.orders[each][0] for each in first} == first, f"{third} comes last"


def test_selections_move_the_point_by_what_they_let_through():
    join = join_of(f"{CLIQUE} AND c.x > 1 AND c.y > 1")
    planner, world = ChartPlanner(join), World(join, ALL, passes={"c": 0.1})
    run_of(planner, world, 5, a=100, b=100, c=400)
    assert planner.point == pytest.approx((100, 100, 40))
    assert set(planner.rounds.chosen.order[:2]) != {"a", "b"}
    assert [each.name for each in planner.rounds.query.shape.selections] == ["conditions on c"]
    assert planner.rounds.query.shape.selections[0].tpr == pytest.approx(4e5)


def test_every_linked_pair_is_a_join_and_a_class_is_one_chain():
    found = conditions_of(join_of("a.k = b.k AND b.k = c.k AND a.x = c.x AND a.y < b.y"))
    assert found == [
        Condition("a.k = b.k", ("a", "b"), 0),
        Condition("a.k = c.k", ("a", "c"), 0),
        Condition("b.k = c.k", ("b", "c"), 0),
        Condition("a.x = c.x", ("a", "c"), 1),
        Condition("a.y < b.y", ("a", "b"), None),
    ]
    shape = shape_of(join_of(), conditions_of(join_of()), {}, {("a", "b"): 7e4})
    assert [(each.key, each.tpr) for each in shape.joins] == [("0", 7e4), ("0", 3e3), ("0", 3e3)]


def test_the_projection_keeps_what_the_state_keeps():
    join = join_of()
    assert join.columns_kept("a") == ["ts", "id", "k"]
    assert kept_share(join, "a") == pytest.approx(3 * 64 / (5 * 64 + 128))
    shape = shape_of(join_of(f"{CLIQUE} AND a.k > 1 AND b.x > 1"), [], {}, {})
    assert {each.stream: each.first for each in shape.projections} == {
        "a": True,
        "b": False,
        "c": True,
    }, "x is asked of b, and not kept"


@pytest.mark.parametrize(
    ("where", "tables"),
    [
        (CLIQUE, ""),
        (CHAIN, ""),
        ("a.k = b.k AND b.x < c.x", ""),
        ("a.k = t.k AND t.x = b.x AND b.y = c.y", "t"),
        ("a.k = b.k AND b.k = c.k AND t.k = a.x AND u.k = t.y", "tu"),
    ],
)
def test_any_plan_gives_orders_that_every_stream_can_go(where, tables):
    join = join_of(where, tables=tables)
    for fan_out in (0.5, 2.0):
        known = {(a, t): fan_out for a in join.aliases for t in tables}
        for order in (("a", "b", "c"), ("b", "c", "a"), ("a", "c", "b"), ("c", "b", "a")):
            for source, probes in probe_orders(join, order, known).items():
                operators = {
                    op.relation: op for op in join.views[source].operators if isinstance(op, Probe)
                }
                assert sorted(probes) == sorted(operators)
                done = set()
                among = {op.index for op in operators.values()}
                for relation in probes:
                    assert operators[relation].after & among <= done
                    done.add(operators[relation].index)


def test_a_stream_that_hangs_on_another_waits_for_it():
    orders = probe_orders(join_of(CHAIN), ("a", "c", "b"), {})
    assert orders == {"a": ("b", "c"), "b": ("a", "c"), "c": ("b", "a")}


def test_a_strict_table_is_looked_up_first_and_a_fertile_one_last():
    join = join_of(f"{CLIQUE} AND t.k = a.x", tables="t")
    assert probe_orders(join, ("b", "c", "a"), {("a", "t"): 0.2})["a"] == ("t", "b", "c")
    assert probe_orders(join, ("b", "c", "a"), {("a", "t"): 3.0})["a"] == ("b", "c", "t")
    assert probe_orders(join, ("b", "c", "a"), {("c", "t"): 0.2})["c"] == ("b", "a", "t")


def test_windows_of_different_lengths_lower_the_selectivity_of_those_that_meet_for_less():
    join = join_of(windows=("10 SECONDS", "10 SECONDS", "2 SECONDS"))
    planner = ChartPlanner(join)
    run_of(planner, World(join, ALL), 3, a=100, b=100, c=100)
    query = planner.rounds.query
    assert query.window_s == 10
    assert query.join_selectivities == {
        "a.k = b.k": pytest.approx(0.01),
        "a.k = c.k": pytest.approx(0.006),
        "b.k = c.k": pytest.approx(0.006),
    }


def test_a_window_of_rows_lasts_as_long_as_so_many_rows_take():
    join = join_of(windows=("500", "100", "300"))
    planner = ChartPlanner(join)
    run_of(planner, World(join, ALL), 3, a=100, b=100, c=0)
    assert planner.rounds.query.window_s == pytest.approx(5.0)


def test_rates_beyond_the_chart_are_counted_and_the_chart_is_built_for_them():
    join = join_of()
    planner, world = ChartPlanner(join, Charting(patience=3)), World(join, ALL)
    run_of(planner, world, 4, a=10, b=20, c=30)
    assert planner.chart.dimensions[2].high == pytest.approx(60)
    assert [each.low for each in planner.chart.dimensions] == [0, 0, 0]
    run_of(planner, world, 12, a=1000, b=2000, c=500)
    assert planner.built == 2
    assert planner.outside >= 3
    assert [d.high for d in planner.chart.dimensions] == pytest.approx([2000, 4000, 1000])
    assert "built for the rates of the last rounds" in planner.explain()
    run_of(planner, world, 30, a=10, b=20, c=5)
    assert planner.built == 3, "rates so low that one region holds them all"
    assert planner.rounds.rebuilt == 2
    assert planner.chart.dimensions[0].high < 200


def test_a_join_selectivity_that_turns_out_off_builds_the_chart_again():
    join = join_of()
    planner = ChartPlanner(join)
    world = World(join, {"ab": 0.001, "ac": 0.02, "bc": 0.02})
    run_of(planner, world, 8, a=100, b=100, c=100)
    assert planner.rounds.rebuilt == 0, "rounding is not a change"
    world.selectivities = {"ab": 0.02, "ac": 0.001, "bc": 0.02}
    decisions = [d for d in run_of(planner, world, 15, a=100, b=100, c=100) if d]
    assert planner.rounds.chosen.order == ("a", "c", "b")
    assert any("between a and" in d.reason for d in decisions)
    assert planner.built == 1 + planner.rounds.rebuilt
    assert 1 <= planner.rounds.rebuilt <= 12


def test_rounds_that_move_no_time_are_added_to_the_next():
    join = join_of()
    planner, world = ChartPlanner(join), World(join, ALL)
    still = world.round(a=100, b=100, c=100)
    still = Round(still.number, 0.0, *list(vars(still).values())[2:])
    assert planner.observe(still) is None
    assert planner.seen == 0
    planner.observe(world.round(a=100, b=100, c=100))
    assert planner.rates["a"] == 200


def test_a_selectivity_that_was_not_seen_is_taken_to_be_one():
    join = join_of(f"{CLIQUE} AND c.x > 1")
    planner = ChartPlanner(join)
    assert planner.selectivities["c"] == 1
    run_of(planner, World(join, ALL, passes={"c": 0.1}), 4, a=100, b=100, c=0)
    assert planner.selectivities["c"] == 1
    assert any("selectivity" in line and "c" in line for line in planner.assumptions)


def test_what_rounds_say_of_results_is_added_up():
    join = join_of()
    planner, world = ChartPlanner(join), World(join, ALL)
    run_of(planner, world, 3, a=100, b=100, c=100)
    assert planner.results == 3 * 7


def test_a_stream_that_a_round_does_not_mention_has_sent_nothing():
    join = join_of()
    planner, world = ChartPlanner(join), World(join, ALL)
    planner.observe(world.round(seconds=2.0, a=100, b=50))
    assert [planner.rates[alias] for alias in "abc"] == [100, 50, 0]


def test_one_slow_stream_is_no_reason_to_build_a_chart_again():
    join = join_of()
    planner, world = ChartPlanner(join, Charting(patience=3, rounds=1)), World(join, ALL)
    run_of(planner, world, 2, a=100, b=100, c=100)
    run_of(planner, world, 8, a=100, b=100, c=1)
    assert planner.built == 1
    run_of(planner, world, 3, a=1, b=1, c=1)
    assert planner.built == 1
    run_of(planner, world, 1, a=1, b=1, c=1)
    assert planner.built == 2


def test_after_a_chart_was_built_again_rates_beyond_it_have_the_same_patience():
    join = join_of()
    planner, world = ChartPlanner(join, Charting(patience=3, rounds=1)), World(join, ALL)
    run_of(planner, world, 2, a=10, b=20, c=30)
    built = []
    for factor in (10, 100):
        run_of(planner, world, 3, a=10 * factor, b=20 * factor, c=30 * factor)
        built.append(planner.built)
        run_of(planner, world, 1, a=10 * factor, b=20 * factor, c=30 * factor)
        built.append(planner.built)
    assert built == [1, 2, 2, 3]


def test_two_streams_have_one_order_and_no_chart():
    join = join_of("a.k = b.k", windows=("5 SECONDS",) * 2)
    planner = ChartPlanner(join)
    decisions = run_of(planner, World(join, {"ab": 0.1}), 6, a=10, b=20)
    assert next(d for d in decisions if d).orders == {"a": ("b",), "b": ("a",)}
    assert planner.chart is None
    assert "the only order is a ⋈ b" in planner.explain()
    with pytest.raises(QueryMeshError, match="no chart to draw: the only order is a ⋈ b"):
        planner.draw("nowhere.svg")


def test_five_streams_have_a_chart_in_bounded_memory_that_says_so():
    where = " AND ".join(f"{one}.k = {other}.k" for one, other in pairwise("abcde"))
    join = join_of(where, ("5 SECONDS",) * 5)
    planner = ChartPlanner(join, Charting(most_regions=5))
    world = World(join, {one + other: 0.01 for one, other in combinations("abcde", 2)})
    rng = np.random.default_rng(0)
    for _ in range(12):
        planner.observe(world.round(**{alias: rng.integers(20, 400) for alias in "abcde"}))
    assert planner.chart.regions == 40**5
    assert planner.chart.held == 5
    assert planner.chart.memory_bytes <= 5 * 256
    text = planner.explain()
    assert "102,400,000 regions, 5 regions held" in text
    assert "too many to hold all" in text


def test_what_no_round_has_shown_is_assumed_and_said():
    join = join_of(CHAIN)
    planner = ChartPlanner(join)
    run_of(planner, World(join, {"ab": 0.04}), 3, a=10, b=10, c=10)
    assert planner.assumptions == [
        "selectivity between b and c: no tuple has probed for it yet, assumed to be 0.04",
        "processing rate between b and c: not measured yet, assumed to be the paper's",
    ]
    assert "assumed to be 0.04" in planner.explain()


def test_what_is_charted_without_having_been_seen_is_said():
    join = join_of(f"{CLIQUE} AND a.id > 1")
    planner = ChartPlanner(join, Charting(settle=1))
    run_of(planner, World(join, ALL, {"a": 0.5}), 3, a=10, b=10, c=0)
    projection, silent = planner.assumptions[-2:]
    assert projection.startswith("processing rate of the projection of a: no step of its own here")
    assert silent == "arrival rates of c: none came yet, charted as far as the others'"


def pair_of(*conditions, **how) -> PairSelectivity:
    made = tuple(Condition(name, ("a", "b"), number) for name, number in conditions)
    return PairSelectivity(made, **{"threshold": 0.25, "decay": 0.5, **how})


def test_histograms_stand_in_until_enough_pairs_were_found():
    rng = np.random.default_rng(0)
    values = {(alias, 0): rng.integers(0, 50, 2000) for alias in "ab"}
    pair = pair_of(("a.k = b.k", 0))
    pair.see(found=3, pairs=100, asked=10, seconds=0.1)
    assert pair.estimate_anew(values)
    assert pair.by == "histograms"
    assert pair.estimate == pytest.approx(0.02, rel=0.1)
    for _ in range(20):
        pair.see(found=300, pairs=5000, asked=100, seconds=0.1)
        pair.estimate_anew(values)
    assert pair.by == "counted"
    assert pair.estimate == pytest.approx(0.06, rel=0.05)
    assert pair.estimated <= 3


def test_the_conditions_of_a_pair_divide_its_selectivity_by_their_histograms():
    rng = np.random.default_rng(0)
    values = {("a", 0): rng.integers(0, 4, 3000), ("b", 0): rng.integers(0, 4, 3000)}
    values |= {("a", 1): rng.integers(0, 40, 3000), ("b", 1): rng.integers(0, 40, 3000)}
    pair = pair_of(("a.k = b.k", 0), ("a.x = b.x", 1))
    pair.see(found=1000, pairs=100_000, asked=100, seconds=0.1)
    pair.estimate_anew(values)
    assert math.prod(pair.shares.values()) == pytest.approx(0.01)
    assert pair.shares["a.k = b.k"] / pair.shares["a.x = b.x"] == pytest.approx(10, rel=0.1)
    without = pair_of(("a.k = b.k", 0), ("a.x = b.x", 1))
    without.see(found=1000, pairs=100_000, asked=100, seconds=0.1)
    without.estimate_anew({})
    assert without.shares == {"a.k = b.k": pytest.approx(0.1), "a.x = b.x": pytest.approx(0.1)}


@given(st.floats(0.0005, 0.3), st.integers(0, 1000))
def test_chance_alone_hardly_ever_changes_a_selectivity(selectivity, seed):
    rng = np.random.default_rng(seed)
    pair = pair_of(("a.k = b.k", 0))
    for _ in range(50):
        pair.see(int(rng.binomial(20_000, selectivity)), 20_000, 100, 0.01)
        pair.estimate_anew({})
    assert pair.estimated <= 4


def test_explain_draws_slices_the_path_and_the_counts():
    join = join_of()
    planner, world = ChartPlanner(join), World(join, ALL)
    assert "no charts yet: 0 rounds of 2 observed" in planner.explain()
    run_of(planner, world, 6, a=50, b=100, c=400)
    run_of(planner, world, 6, a=400, b=100, c=50)
    text = planner.explain()
    assert "w_r 0.4 / output rate + w_m 0.6 * memory, k 40" in text
    assert "64,000 regions, 64,000 regions held in 64,000 bytes" in text
    assert text.count("@") == 1
    assert ", where the point is" in text
    assert "11 rounds planned" in text
    assert "switched" in text
    assert "a tuple of c probes b, then a" in text
    drawn = next(line.split()[-1] for line in text.splitlines() if "@" in line)
    assert set(drawn) <= set("ABCabc@")


def test_the_drawing_has_the_regions_the_path_and_the_plans(tmp_path):
    join = join_of()
    planner, world = ChartPlanner(join, Charting(k=12, adaptive=True)), World(join, ALL)
    with pytest.raises(QueryMeshError, match="no chart to draw: 0 of 2 rounds"):
        planner.draw(tmp_path / "early.svg")
    run_of(planner, world, 6, a=50, b=100, c=400)
    run_of(planner, world, 6, a=400, b=100, c=50)
    planner.draw(tmp_path / "chart.svg")
    root = ElementTree.parse(tmp_path / "chart.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    path = root.find(f".//{space}polyline").get("points").split()
    assert len(path) == 11
    assert len(set(path)) >= 4
    fills = {rect.get("fill") for rect in root.iter(f"{space}rect")}
    assert len(fills) == 3, "three orders, three colours"
    texts = [text.text or "" for text in root.iter(f"{space}text")]
    assert any("(b ⋈ c) ⋈ a" in text for text in texts)
    planner.explain(html=tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<svg" in page
    assert "fidelity" in page
    with pytest.raises(QueryMeshError, match="cannot write the chart to"):
        planner.draw(tmp_path / "no" / "folder.svg")


def test_the_page_has_the_chart_of_each_stream_with_conditions_of_its_own(tmp_path):
    join = join_of(f"{CLIQUE} AND a.k < 5")
    planner, world = ChartPlanner(join, Charting(k=12)), World(join, ALL, passes={"a": 0.25})
    planner.explain(html=tmp_path / "early.html")
    assert "<svg" not in (tmp_path / "early.html").read_text(encoding="utf-8")
    run_of(planner, world, 6, a=50, b=100, c=400)
    planner.explain(html=tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2
    assert page.count("<polyline") == 1, "of a stream's chart no path is kept"
    assert page.count("<title>now</title>") == 2
    assert "selectivity of a</text>" in page
    assert "A: σ → π" in page
    assert "B: π → σ" in page
    assert "sel-λ chart of a: 144 regions" in page
    assert "sel-λ chart of b" not in page


def test_settings_are_checked_when_they_are_made():
    assert Charting(weights=(1, 0)).w == Weights(1.0, 0.0)
    assert Charting().w == DEFAULT_WEIGHTS
    for weights, said in (
        ((0.4,), "two numbers"),
        ("ab", "two numbers"),
        (0.4, "two numbers"),
        ((0.4, "x"), "two numbers"),
        ((-1, 1), "weight of rate must be a finite number from 0 on, not -1"),
        ((0, 0), "both 0"),
        ((math.nan, 1), "finite"),
    ):
        with pytest.raises(OptionError, match=said):
            checked_weights(weights)
        with pytest.raises(OptionError, match=said):
            Charting(weights=weights)
    for wrong, said in (
        ({"k": 0}, "k, the partitions of a dimension, must be a whole number from 1 on, not 0"),
        ({"k": 2.5}, "whole number"),
        ({"most_regions": 0}, "most_regions"),
        ({"rounds": 0}, "rounds"),
        ({"threshold": -0.1}, "threshold"),
        ({"head_room": 1}, "head_room"),
        ({"model": "papre"}, "did you mean 'paper'"),
    ):
        with pytest.raises(OptionError, match=said):
            Charting(**wrong)
    with pytest.raises(QueryMeshError, match="decay"):
        Charting(decay=-1)


def test_weights_and_charting_are_of_policy_chart_and_given_once():
    assert Chart(weights=(0.1, 0.9)).charting.w == Weights(0.1, 0.9)
    assert Chart(charting=Charting(k=5)).charting.k == 5
    assert Chart(weights=(0.1, 0.9), charting=Charting(k=5)).charting.k == 5
    assert Chart().charting == Charting()
    with pytest.raises(TypeError, match="weights"):
        Mesh(weights=(0.1, 0.9))
    with pytest.raises(TypeError, match="charting"):
        Rate(charting=Charting())
    with pytest.raises(OptionError, match="Charting, not dict"):
        Chart(charting={"k": 3})


def test_weights_of_the_command_line_are_two_numbers():
    assert weights_from("0.4, 0.6") == Weights(0.4, 0.6)
    with pytest.raises(OptionError, match=r"with a comma between them, as 0\.4,0\.6, not"):
        weights_from("0.4;0.6")
    with pytest.raises(OptionError, match="weights are two numbers, what a high output rate"):
        weights_from("0.4")
    with pytest.raises(OptionError, match="weight of memory must be a finite number"):
        weights_from("0.4,-1")


def test_the_paper_s_model_can_be_asked_for_and_differs():
    join = join_of()
    chosen = {}
    for model in ("sustained", "paper"):
        planner, world = ChartPlanner(join, Charting(model=model)), World(join, ALL)
        # Fast probes: joins are busy for a small part of the time.
        for _ in range(3):
            shown = world.round(a=70, b=200, c=400)
            fast = {key: met._replace(seconds=met.asked / 1e5) for key, met in shown.met.items()}
            planner.observe(Round(*list(vars(shown).values())[:6], fast, shown.stored))
        chosen[model] = planner.rounds.chosen.order
    assert chosen["sustained"] == ("a", "b", "c")
    assert chosen["paper"] != chosen["sustained"]
