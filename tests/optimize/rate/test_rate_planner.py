"""The planner of policy "rate", on rounds made by hand."""

import math
import random
from dataclasses import replace
from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import querymesh as qm
from join_feed import SCHEMA
from querymesh.cost.plan_tree import Source, join_shape
from querymesh.cost.rates import JoinCosts
from querymesh.errors import QueryError
from querymesh.mesh.route import route_fault
from querymesh.optimize.planning.orders import order_of, route_for, written_orders
from querymesh.optimize.planning.planner import PairStats, Round
from querymesh.optimize.rate.cardinality import expected_total
from querymesh.optimize.rate.goals import First, Last, MostBy, choose
from querymesh.optimize.rate.join_plans import Space, plan_of, plans
from querymesh.optimize.rate.observed_rates import (
    AT_ONCE_S,
    LEAST_RATE,
    RateStatistics,
    linked_pairs,
)
from querymesh.optimize.rate.probe_orders import tree_orders
from querymesh.optimize.rate.rate_planner import (
    RatePlanner,
    chosen_for,
    default_goal,
    has_moved,
    is_better,
)
from querymesh.optimize.rate.stream_query import JoinPredicate, RateQuery, Selection
from querymesh.query.bind.windowed_join import bind_join
from querymesh.query.model import Probe

CHAIN = "a.k = b.k AND b.x = c.x"
STAR = "a.k = b.k AND a.k = c.k AND a.k = d.k"


def join_of(where, streams="abc", statics="", window="[RANGE 10 SECONDS]"):
    relations = [f"{s.upper()} {s} {window}" for s in streams]
    relations += [f"{s.upper()} {s}" for s in statics]
    asked = qm.query(f"SELECT a.id AS a FROM {', '.join(relations)} WHERE {where}", time="ts")
    return bind_join(asked, {s.upper(): SCHEMA for s in streams + statics})


def round_of(number, arrived, matching, seconds=1.0, window_s=10.0, probe_s=1e-5, **more):
    """Streams with full windows, of which pairs match as often as `matching` says."""
    met = {}
    for (one, other), selectivity in matching.items():
        for source, relation in ((one, other), (other, one)):
            if source in arrived:
                stored = arrived.get(relation, 0) / seconds * window_s
                found = arrived[source] * stored * selectivity
                met[source, relation] = PairStats(
                    arrived[source], round(found), stored, arrived[source] * probe_s
                )
    return Round(
        number, seconds, 0.1, arrived, arrived, dict.fromkeys(arrived, 0.0), met,
        {alias: round(rows * window_s) for alias, rows in arrived.items()}, **more,
    )  # fmt: skip


EVEN = {("a", "b"): 0.01, ("b", "c"): 0.01}


def test_the_stream_that_comes_often_is_joined_last():
    planner = RatePlanner(join_of(CHAIN), MostBy(60))
    decision = planner.observe(round_of(0, {"a": 500, "b": 50, "c": 10}, EVEN))
    assert decision.orders == {"a": ("b", "c"), "b": ("c", "a"), "c": ("b", "a")}
    assert join_shape(planner.chosen.tree) == (("b", "c"), "a")
    assert "(b ⋈ c) ⋈ a" in decision.reason


def test_swapped_rates_bring_another_order_once():
    planner = RatePlanner(join_of(CHAIN), MostBy(60))
    planner.observe(round_of(0, {"a": 500, "b": 50, "c": 10}, EVEN))
    decisions = [
        planner.observe(round_of(number, {"a": 10, "b": 50, "c": 500}, EVEN))
        for number in range(1, 8)
    ]
    (switch,) = [each for each in decisions if each is not None]
    assert switch.orders["b"] == ("a", "c")
    assert len(planner.history) == 2


def test_nothing_moves_while_nothing_changes():
    planner = RatePlanner(join_of(CHAIN), MostBy(60))
    rng = random.Random(1)
    for number in range(20):
        rates = {"a": 300 + rng.randint(-9, 9), "b": 50 + rng.randint(-2, 2), "c": 40}
        decision = planner.observe(round_of(number, rates, EVEN))
        assert (decision is None) == (number > 0)


def test_a_selective_join_comes_first_when_rates_are_the_same():
    planner = RatePlanner(join_of(CHAIN), MostBy(60))
    matching = {("a", "b"): 0.0001, ("b", "c"): 0.05}
    decision = planner.observe(round_of(0, dict.fromkeys("abc", 100), matching))
    assert decision.orders["b"] == ("a", "c")


def test_a_late_plan_is_left_for_one_that_is_not():
    """With a probe of 2 ms, (a ⋈ b) works 60 s a second on what it hands to c."""
    planner = RatePlanner(join_of(CHAIN), MostBy(60))
    matching = {("a", "b"): 0.3, ("b", "c"): 0.001}
    shown = round_of(0, dict.fromkeys("abc", 100), matching, probe_s=2e-3)
    decision = planner.observe(shown)
    assert decision.orders["b"] == ("c", "a")
    query, _ = planner.statistics.query()
    late = chosen_for(query, MostBy(60), Space("linear", "pushed"))
    assert join_shape(late.tree) == (("b", "c"), "a")
    assert late.value == planner.chosen.value


def test_a_pair_that_was_not_seen_is_waited_for_and_then_assumed():
    planner = RatePlanner(join_of(CHAIN), MostBy(60))
    seen = {("a", "b"): 0.01}
    rates = {"a": 50, "b": 50, "c": 10}
    assert planner.observe(round_of(0, rates, seen)) is None
    assert "until every pair" in planner.explain()
    assert planner.observe(round_of(1, rates, seen)) is None
    assert planner.observe(round_of(2, rates, seen)) is not None
    assert planner.assumptions == [
        "how often b ⋈ c match is not known: assumed 0.01 of the pairs, the geometric mean of the "
        "known ones"
    ]
    assert planner.assumptions[0] in planner.explain()


def test_a_rate_that_was_not_seen_is_assumed_and_said_so():
    statistics = RateStatistics(join_of(CHAIN))
    statistics.observe(replace(round_of(0, {"a": 30, "b": 10, "c": 5}, EVEN), seconds=0.0))
    query, notes = statistics.query()
    assert [stream.rate for stream in query.streams] == [1.0, 1.0, 1.0]
    assert "the rate of stream a is not known: assumed 1 rows a second" in notes[0]


def test_what_is_known_and_chosen_is_told():
    planner = RatePlanner(join_of(CHAIN + " AND a.y > 3"), MostBy(60))
    planner.observe(round_of(0, {"a": 500, "b": 50, "c": 10}, EVEN, probe_s=2e-6))
    text = planner.explain()
    for part in (
        'policy rate, goal "most by 60s", 1 round seen',
        "(b ⋈ c) ⋈ a, chosen in round 0 by exact of 2 plans",
        "b  probes c > a",
        "0.01",
        "2.00 µs to probe",
        "results by 60 s",
    ):
        assert part in text


def test_the_first_results_once_made_are_planned_for_no_more():
    planner = RatePlanner(join_of(CHAIN), First(100))
    planner.observe(round_of(0, {"a": 500, "b": 50, "c": 10}, EVEN, results=200))
    for number in range(1, 6):
        shown = round_of(number, {"a": 10, "b": 50, "c": 500}, EVEN, results=10)
        assert planner.observe(shown) is None


def test_streams_without_an_end_have_no_last_result():
    with pytest.raises(QueryError, match=r"no last result: a, b, c has no end.*MostBy"):
        RatePlanner(join_of(CHAIN), Last())
    RatePlanner(join_of(CHAIN), Last(), {"a": 5, "b": 5, "c": 5})


def test_more_results_than_there_will_be_are_refused():
    planner = RatePlanner(join_of(CHAIN), First(10**9), {"a": 50, "b": 50, "c": 10})
    assert planner.observe(round_of(0, {"a": 50, "b": 50, "c": 10}, EVEN)) is None
    assert "are expected in all" in planner.problem
    with pytest.raises(QueryError, match="are expected in all"):
        planner.choose()


def test_a_static_table_takes_part():
    join = join_of("a.k = b.k AND t.x = b.x", "ab", "t")
    planner = RatePlanner(join, MostBy(60))
    matching = {("a", "b"): 0.05}
    shown = round_of(0, {"a": 100, "b": 100}, matching)
    shown.met["b", "t"] = PairStats(100, 1, 1000.0, 1e-3)
    decision = planner.observe(shown)
    assert decision.orders == {"a": ("b", "t"), "b": ("t", "a")}


@pytest.mark.parametrize(
    ("seconds", "probe_us", "move_us"),
    [((0.002, 0.003), 1.0, 1.0), ((0.0015, 0.0015), 1.5, 0.0), ((0.001, 0.0025), 0.7308, 0.7308)],
)
def test_no_probe_is_free_whatever_a_fit_says(seconds, probe_us, move_us):
    """A thousand rows ask each: one finds a thousand, the other two. The last times would have the
    rows that are found cost all, and asking less than nothing."""
    statistics = RateStatistics(join_of("a.k = b.k", "ab"))
    shown = round_of(0, {"a": 1000, "b": 1000}, {("a", "b"): 0.05})
    shown.met["a", "b"] = PairStats(1000, 1000, 500.0, seconds[0])
    shown.met["b", "a"] = PairStats(1000, 2000, 500.0, seconds[1])
    statistics.observe(shown)
    costs = statistics.query()[0].costs
    assert 1e6 * costs.probe_s == pytest.approx(probe_us, rel=1e-3)
    assert 1e6 * costs.move_s == pytest.approx(move_us, rel=1e-3)


def statistics_of(met):
    """Of two streams after one round: by who asks whom the rows, the matches, and the stored."""
    statistics = RateStatistics(join_of("a.k = b.k", "ab"))
    shown = round_of(0, {"a": 100, "b": 200}, {})
    for (one, other), pair in met.items():
        shown.met[one, other] = PairStats(*pair, 1e-3)
    statistics.observe(shown)
    return statistics


def test_a_round_that_found_nothing_counts_as_half_a_match():
    statistics = statistics_of({"ab": (100, 0, 2000.0), "ba": (200, 0, 1000.0)})
    assert statistics.unknown == []
    (predicate,) = statistics.query()[0].predicates
    assert predicate.selectivity == pytest.approx(0.5 / (100 * 2000 + 200 * 1000))


def test_matches_of_both_directions_count_together():
    statistics = statistics_of({"ab": (100, 30, 2000.0), "ba": (200, 50, 1000.0)})
    (predicate,) = statistics.query()[0].predicates
    assert predicate.selectivity == pytest.approx(80 / (100 * 2000 + 200 * 1000))


def test_a_pair_of_which_nothing_was_stored_is_not_known():
    assert statistics_of({"ab": (100, 0, 0.0)}).unknown == ["a ⋈ b"]


# When another plan is worth a change


LATE = chosen_for(
    RateQuery((Source("a", 10.0), Source("b", 10.0)), (JoinPredicate("a", "b", 0.1),)),
    MostBy(60),
    Space(),
)
LATE = replace(LATE, value=1000.0, load=2.0, on_time=False)


@pytest.mark.parametrize(
    ("value", "load", "better"),
    [
        (1031, 2.0, True),
        (1030, 2.0, False),
        (1029, 2.0, False),
        (1029, 1.9, True),
        (990, 1.0, True),
        (990, 1.95, False),
        (970, 1.0, True),
        (969, 1.0, False),
        (1000, 1.94, False),
        (1000, 1.939, True),
    ],
)
def test_a_plan_is_left_for_more_results_or_for_as_many_with_less_work(value, load, better):
    found = replace(LATE, value=float(value), load=load)
    assert is_better(found, LATE, MostBy(60)) == better


@pytest.mark.parametrize(
    ("seconds", "load", "better"),
    [(969, 2.0, True), (971, 2.0, False), (1010, 1.0, True), (1031, 1.0, False)],
)
def test_a_plan_is_left_for_one_that_is_done_earlier(seconds, load, better):
    found = replace(LATE, value=float(seconds), load=load)
    for goal in (First(10), Last()):
        assert is_better(found, LATE, goal) == better


def test_of_plans_that_are_never_late_only_the_work_counts():
    running = replace(LATE, on_time=True)
    for value in (500.0, 5000.0):
        assert is_better(replace(running, value=value, load=1.0), running, MostBy(60))
        assert not is_better(replace(running, value=value, load=1.99), running, MostBy(60))
    # If only one of the two is never late, its value counts too.
    assert not is_better(replace(running, value=500.0, load=1.0), LATE, MostBy(60))
    assert not is_better(replace(LATE, value=500.0, load=1.0), running, MostBy(60))


def test_a_plan_that_never_gets_there_is_left_for_any():
    never = replace(LATE, value=math.inf)
    assert is_better(replace(LATE, value=1e9, load=1e9), never, First(10))


@pytest.mark.parametrize(
    ("window", "goal_s"), [("10 SECONDS", 60), ("29 SECONDS", 60), ("45 SECONDS", 90)]
)
def test_without_a_goal_it_is_a_minute_or_twice_the_longest_window(window, goal_s):
    assert default_goal(join_of(CHAIN, window=f"[RANGE {window}]")) == MostBy(goal_s)
    assert RatePlanner(join_of(CHAIN, window=f"[RANGE {window}]")).goal == MostBy(goal_s)


def test_a_planner_looks_again_once_a_figure_has_moved_by_more_than_a_tenth():
    before = {"rate of a": 100.0, "a ⋈ b": 0.0}
    assert not has_moved(before, {"rate of a": 110.0, "a ⋈ b": 0.0})
    assert has_moved(before, {"rate of a": 110.1, "a ⋈ b": 0.0})
    assert has_moved(before, {"rate of a": 89.9, "a ⋈ b": 0.0})
    assert has_moved(before, {"rate of a": 100.0, "a ⋈ b": 1e-9})
    assert has_moved(before, {"rate of a": 100.0})
    assert has_moved({"rate of a": 100.0}, before)


def test_while_nothing_moves_no_plan_is_looked_at(monkeypatch):
    planner = RatePlanner(join_of(CHAIN), MostBy(60))
    planner.observe(round_of(0, {"a": 500, "b": 50, "c": 10}, EVEN))
    looked_at = []
    monkeypatch.setattr(planner, "choose", looked_at.append)
    for number in range(1, 5):
        planner.observe(round_of(number, {"a": 500, "b": 50, "c": 10}, EVEN))
    assert looked_at == []


# What rounds tell


def test_before_any_round_all_is_assumed():
    query, _ = RateStatistics(join_of("a.k = b.k AND t.x = b.x", "ab", "t")).query()
    # The table is there in a millisecond, and no other rate is known.
    assert [stream.rate for stream in query.streams] == [1000] * 3
    assert {step.selectivity for step in query.steps} == {1.0}
    assert {step.cost_s for step in query.steps} == {0.0}
    assert {predicate.selectivity for predicate in query.predicates} == {1.0}
    assert query.costs == JoinCosts()
    table = query.streams[-1]
    assert (table.name, table.size, table.window_s) == ("t", 1.0, math.inf)


def test_a_window_of_time_lasts_as_long_as_it_says_and_a_stream_has_no_end():
    statistics = RateStatistics(join_of(CHAIN), {"b": 40})
    statistics.observe(round_of(0, {"a": 50, "b": 20, "c": 10}, EVEN))
    streams = statistics.query()[0].streams
    assert [stream.window_s for stream in streams] == [10.0] * 3
    assert [stream.size for stream in streams] == [math.inf, 40, math.inf]


def test_a_window_of_rows_at_an_unknown_rate_is_not_known_to_end():
    query, _ = RateStatistics(join_of(CHAIN, window="[ROWS 100]")).query()
    assert [stream.window_s for stream in query.streams] == [math.inf] * 3


def test_a_stream_that_a_round_does_not_mention_has_fallen_silent():
    statistics = RateStatistics(join_of(CHAIN))
    statistics.observe(round_of(0, {"a": 50, "b": 20}, {("a", "b"): 0.01}, seconds=2.0))
    assert [stream.rate for stream in statistics.query()[0].streams] == [25, 10, LEAST_RATE]


def test_storing_a_tuple_is_paid_before_the_joins_or_by_each_of_them():
    statistics = RateStatistics(join_of(CHAIN))
    shown = round_of(0, {"a": 100, "b": 100, "c": 100}, EVEN)
    shown = replace(
        shown,
        passed={"a": 50, "b": 100, "c": 100},
        own_seconds={"a": 0.2, "b": 0.0, "c": 0.0},
        storing_seconds=0.5,
    )
    statistics.observe(shown)
    storing_s = 0.5 / 250
    on_states, _ = statistics.query()
    assert [step.selectivity for step in on_states.steps] == [0.5, 1, 1]
    assert [step.cost_s for step in on_states.steps] == pytest.approx(
        [0.002 + 0.5 * storing_s, storing_s, storing_s]
    )
    assert on_states.costs.hash_s == 0
    in_trees, _ = statistics.query(stores_trees=True)
    assert [step.cost_s for step in in_trees.steps] == pytest.approx([0.002, 0, 0])
    assert in_trees.costs.hash_s == pytest.approx(storing_s)


def test_what_is_stored_in_a_static_table_is_its_size():
    statistics = RateStatistics(join_of("a.k = b.k AND t.x = b.x", "ab", "t"))
    shown = round_of(0, {"a": 100, "b": 100}, {("a", "b"): 0.05})
    shown.met["b", "t"] = PairStats(100, 1, 700.0, 1e-3)
    statistics.observe(shown)
    table = statistics.query()[0].streams[-1]
    assert (table.name, table.size, table.end_s) == ("t", 700, pytest.approx(AT_ONCE_S))
    assert statistics.table_rows == {"t": 700}


def test_a_stream_has_a_row_at_least_and_passes_no_more_than_came():
    statistics = RateStatistics(join_of(CHAIN), {"a": 0, "b": 1, "c": 7})
    shown = round_of(0, {"a": 10, "b": 10, "c": 10}, EVEN)
    statistics.observe(replace(shown, passed={"a": 20, "b": 5, "c": 10}))
    query, _ = statistics.query()
    assert [stream.size for stream in query.streams] == [1, 1, 7]
    assert [step.selectivity for step in query.steps] == [1, 0.5, 1]


@pytest.mark.parametrize(
    ("asked", "seconds", "probe_s"), [(1, 0.5, 0.5), (0, 0.5, 0.0), (5, 0.0, 0.0)]
)
def test_a_probe_is_timed_if_a_row_asked_and_it_took_time(asked, seconds, probe_s):
    statistics = RateStatistics(join_of("a.k = b.k", "ab"))
    shown = round_of(0, {"a": 10, "b": 10}, {})
    shown.met["a", "b"] = PairStats(asked, 0, 20.0, seconds)
    statistics.observe(shown)
    assert statistics.query()[0].costs.probe_s == probe_s


def test_more_matches_than_pairs_are_all_pairs():
    statistics = RateStatistics(join_of("a.k = b.k", "ab"))
    shown = round_of(0, {"a": 100, "b": 200}, {})
    shown.met["a", "b"] = PairStats(10, 500, 20.0, 1e-3)
    statistics.observe(shown)
    assert statistics.matching.get("a ⋈ b") == 1


def test_windows_that_count_rows_last_as_long_as_the_rate_says():
    statistics = RateStatistics(join_of(CHAIN, window="[ROWS 100]"))
    statistics.observe(round_of(0, {"a": 50, "b": 20, "c": 10}, EVEN, seconds=2.0))
    query, _ = statistics.query()
    assert [stream.window_s for stream in query.streams] == [4.0, 10.0, 20.0]


def test_many_streams_are_planned_by_the_heuristics():
    names = "abcdefg"
    pairs = [(one, other) for at, one in enumerate(names) for other in names[at + 1 :]]
    query = RateQuery(
        tuple(Source(name, 10.0 * (at + 1), window_s=5.0) for at, name in enumerate(names)),
        tuple(JoinPredicate(*pair, 0.01, group="k") for pair in pairs),
        tuple(Selection(name, 0.9, 1e-6) for name in names),
        JoinCosts(probe_s=1e-6),
    )
    found = chosen_for(query, MostBy(60), Space(placing="pushed"))
    assert (found.among, found.way) == (10395, "least work")
    linked = tuple(JoinPredicate(*pair, 0.01) for pair in pairwise(names))
    chain = RateQuery(query.streams, linked, query.steps, JoinCosts(probe_s=0.1))
    found = chosen_for(chain, First(100), Space(placing="pushed"))
    assert (found.among, found.way) == (132, "local time")
    late = RateQuery(query.streams, query.predicates, query.steps, JoinCosts(probe_s=0.1))
    assert chosen_for(late, MostBy(60), Space(placing="pushed")).way == "local rate"
    assert chosen_for(late, First(100), Space(placing="pushed")).way == "local rate"


# Groups of predicates that imply each other


def star(selectivities):
    streams = tuple(Source(name, 10.0, 100) for name in "abcd")
    predicates = tuple(
        JoinPredicate(one, other, selectivity, group="k")
        for (one, other), selectivity in selectivities.items()
    )
    return RateQuery(streams, predicates)


PAIRS = [(one, other) for at, one in enumerate("abcd") for other in "abcd"[at + 1 :]]


def test_one_key_of_four_streams_counts_three_times():
    query = star(dict.fromkeys(PAIRS, 0.1))
    totals = [expected_total(tree) for tree in plans(query)]
    assert totals == [pytest.approx(100**4 * 0.1**3)] * 15


@given(st.lists(st.floats(0.1, 0.2), min_size=6, max_size=6))
def test_all_plans_of_a_query_make_the_same_number_of_results(values):
    query = star(dict(zip(PAIRS, values, strict=True)))
    totals = [expected_total(tree) for tree in plans(query)]
    assert max(totals) == pytest.approx(min(totals))


# From trees to orders to routes


def test_a_tuple_climbs_from_its_leaf_to_the_root():
    query = star(dict.fromkeys(PAIRS, 0.1))
    bushy = plan_of(query, (("a", "b"), ("c", "d")))
    assert tree_orders(bushy, query, {*"abcd"}) == {
        "a": ("b", "c", "d"), "b": ("a", "c", "d"), "c": ("d", "a", "b"), "d": ("c", "a", "b"),
    }  # fmt: skip
    linear = plan_of(query, ((("d", "b"), "a"), "c"))
    assert tree_orders(linear, query, {*"abcd"}) == {
        "a": ("d", "b", "c"), "b": ("d", "a", "c"), "c": ("d", "b", "a"), "d": ("b", "a", "c"),
    }  # fmt: skip


def test_the_other_side_is_entered_where_something_links_to_it():
    streams = tuple(Source(name, 10.0, 100) for name in "abcd")
    chain = RateQuery(
        streams, tuple(JoinPredicate(*pair, 0.1) for pair in (("a", "b"), ("b", "c"), ("c", "d")))
    )
    tree = plan_of(chain, (("a", "b"), ("c", "d")))
    assert tree_orders(tree, chain, {"a", "d"}) == {"a": ("b", "c", "d"), "d": ("c", "b", "a")}


JOINS = [
    join_of(CHAIN),
    join_of(STAR, "abcd"),
    join_of("a.k = b.k AND b.x = c.x AND c.y = d.y AND d.id = a.id AND a.x + c.x > d.y", "abcd"),
    join_of("a.k = b.k AND b.x < c.x AND a.y > 1 AND a.y < 5 AND a.x + b.x > 3", "abc"),
    join_of("a.k = b.k AND t.x = b.x AND t.y = u.y", "ab", "tu"),
]


@pytest.mark.parametrize("join", JOINS, ids=lambda join: str(len(join.schemas)))
def test_every_order_gives_a_route_that_precedence_allows(join):
    for view in join.views.values():
        others = [op.relation for op in view.operators if isinstance(op, Probe)]
        for order in permutations(others):
            route = route_for(view, order)
            assert route_fault(route, view.precedence) == ""
            probes = order_of(view, route)
            repaired = [k for k, relation in enumerate(order) if probes[k] != relation]
            if all(
                {*view.operators[index - 1].after}
                <= {o.index for o in view.operators if not isinstance(o, Probe)}
                | {o.index for o in view.operators if getattr(o, "relation", "") in order[:at]}
                for at, relation in enumerate(order)
                for index in [
                    o.index for o in view.operators if getattr(o, "relation", "") == relation
                ]
            ):
                assert repaired == [], "an order that is allowed stays as it is"


def test_conditions_come_as_soon_as_they_can():
    join = JOINS[3]
    view = join.views["a"]
    names = [view.operators[k - 1].name for k in route_for(view, ("b", "c"))]
    assert names == ["a.y > 1", "a.y < 5", "b", "a.x + b.x > 3", "c"]


def test_an_unknown_relation_in_an_order_is_named():
    view = join_of(CHAIN).views["a"]
    with pytest.raises(QueryError, match=r"a tuple of a cannot probe 'd'.*b"):
        route_for(view, ("d",))


@pytest.mark.parametrize("join", JOINS, ids=lambda join: str(len(join.schemas)))
def test_the_planner_of_any_join_gives_orders_of_all_its_relations(join):
    rng = random.Random(3)
    for _ in range(5):
        planner = RatePlanner(join, MostBy(30))
        rates = {alias: rng.randint(1, 500) for alias in join.aliases}
        matching = {pair: 10 ** -rng.uniform(0, 3) for pair in linked_pairs(join)}
        shown = round_of(0, rates, matching)
        for one, other in matching:
            if not (one in rates and other in rates):
                shown.met[one, other] = PairStats(100, rng.randint(0, 300), 50.0, 1e-3)
        decision = planner.observe(shown)
        assert planner.problem == ""
        for alias, written in written_orders(join).items():
            assert sorted(decision.orders[alias]) == sorted(written)


def test_choices_on_a_goal_agree_with_the_optimizer():
    """The planner's own way to a plan is that of `choose`."""
    query = star(dict.fromkeys(PAIRS, 0.01))
    for goal in (MostBy(5), First(0.5), Last()):
        found = chosen_for(query, goal, Space())
        assert found.value == choose(query, goal).value < math.inf
