import math

import numpy as np
import pytest

from chart_cases import q1, q2
from querymesh.errors import TrainingError
from querymesh.optimize.chart.candidates import (
    QueryShape,
    StreamJoin,
    StreamProjection,
    StreamSelection,
)
from querymesh.optimize.chart.fair_rounds import FairRounds
from querymesh.optimize.chart.query_charts import ChartedQuery
from querymesh.optimize.chart.scheduling import QueryRounds
from querymesh.stats.round_estimates import RoundEstimates


def rounds_of(query, **assumed):
    return QueryRounds(
        query,
        RoundEstimates("arrival rate", dict.fromkeys(query.shape.streams, 500.0)),
        RoundEstimates("selectivity", assumed or dict.fromkeys(query.shape.streams, 0.5)),
    )


def drifting(query, rounds, noise, seed=0):
    """Rates that swing slowly, each stream in its own time, with noise in every round."""
    rng = np.random.default_rng(seed)
    running = rounds_of(query)
    for number in range(rounds):
        running.begin()
        rates = {
            stream: max(20.0, 700 + 600 * math.sin(number / (20 + 7 * at)) + rng.normal(0, noise))
            for at, stream in enumerate(query.shape.streams)
        }
        shares = {stream: rng.uniform(0.2, 0.5) for stream in query.selected}
        running.end(rates, shares)
    return running


def test_streams_that_stay_as_they_are_make_no_moves():
    running = rounds_of(q1(), TCP=0.2)
    for _ in range(30):
        chosen = running.begin()
        assert running.end({"TCP": 500.0}, {"TCP": 0.2})
    assert chosen.streams == (0,)
    assert (running.rounds, running.moves, running.switches) == (30, 0, 0)
    assert running.fidelity == 1.0


def test_a_shift_is_followed_within_a_few_rounds():
    running = rounds_of(q1(), TCP=0.1)
    plans = []
    for number in range(20):
        plans.append(running.begin().streams[0])
        running.end({"TCP": 500.0}, {"TCP": 0.1 if number < 10 else 0.9})
    assert plans == sorted(plans)
    assert 10 < plans.index(1) <= 13
    assert running.switches == 1
    assert running.moves > 1
    assert running.hits == 20 - (plans.index(1) - 10)


def test_each_stream_has_the_plan_of_its_own_chart():
    shape = QueryShape(
        ("a", "b"),
        (StreamSelection("pa", "a", 4e5), StreamSelection("pb", "b", 4e5)),
        (StreamProjection("a", 5e5, 0.35), StreamProjection("b", 5e5, 0.35)),
        (StreamJoin("ab", ("a", "b"), 3e3),),
    )
    query = ChartedQuery(shape, 1.0, dict.fromkeys("ab", (50, 2000)), {"ab": 0.01})
    for shares, plans in (((0.1, 0.9), (0, 1)), ((0.9, 0.1), (1, 0)), ((0.9, 0.9), (1, 1))):
        running = rounds_of(query, **dict(zip("ab", shares, strict=True)))
        assert running.begin() == (("a", "b"), plans)


def test_with_orders_alone_only_the_joins_chart_counts():
    running = rounds_of(q1(), TCP=0.1)
    running.orders_alone = True
    for number in range(20):
        running.begin()
        running.end({"TCP": 500.0}, {"TCP": 0.1 if number < 10 else 0.9})
    assert (running.rounds, running.moves, running.switches) == (20, 0, 0)
    assert running.fidelity == 1


def test_calm_streams_are_predicted_better_than_erratic_ones_as_in_figure_4a():
    calm, erratic = (drifting(q2(k=20), 300, noise) for noise in (10, 300))
    assert calm.fidelity > erratic.fidelity
    assert calm.fidelity > 0.85
    assert calm.switches < erratic.switches


def test_more_partitions_give_more_hits_and_more_moves():
    coarse, fine = (drifting(q2(k=k), 300, noise=10) for k in (2, 20))
    assert fine.hits > coarse.hits
    assert fine.moves > coarse.moves


def test_an_adaptive_chart_moves_less_for_the_same_hits():
    regular = drifting(q2(k=40), 300, noise=10)
    adaptive = drifting(q2(k=64, adaptive=True), 300, noise=10)
    assert adaptive.fidelity >= regular.fidelity - 0.02
    assert adaptive.moves < regular.moves


def test_ten_queries_in_fair_rounds_are_each_served_by_their_charts_as_in_section_5_4():
    running = {f"single{each}": rounds_of(q1(keeps=0.2 + each / 10)) for each in range(5)}
    running |= {f"join{each}": rounds_of(q2(seed=each, k=20)) for each in range(5)}
    queue = FairRounds()
    for name in running:
        queue.register(name)

    def serve(name):
        query, number = running[name], queue.served(name).rounds
        query.begin()
        streams = query.query.shape.streams
        rates = {each: 700 + 500 * math.sin(number / 15 + at) for at, each in enumerate(streams)}
        query.end(rates, dict.fromkeys(query.query.selected, 0.4 + 0.3 * math.sin(number / 9)))
        return 5.0 if name == "join0" else 0.1

    assert len(list(queue.turns(serve, 1000))) == 1000
    assert {query.rounds for query in running.values()} == {100}
    for kind, least in (("single", 0.9), ("join", 0.8)):
        found = [each.fidelity for name, each in running.items() if name.startswith(kind)]
        assert np.mean(found) > least


def test_what_is_assumed_is_said_until_it_is_observed():
    running = rounds_of(q1())
    assert running.assumptions == [
        "arrival rate of TCP: not observed yet, assumed to be 500",
        "selectivity of TCP: not observed yet, assumed to be 0.5",
    ]
    running.begin()
    running.end({"TCP": 400.0}, {"TCP": None})
    assert running.assumptions == ["selectivity of TCP: not observed yet, assumed to be 0.5"]


def test_unknown_rates_are_an_error_not_a_guess():
    nothing = RoundEstimates("arrival rate"), RoundEstimates("selectivity")
    with pytest.raises(TrainingError, match="arrival rate of TCP is not known"):
        QueryRounds(q1(), *nothing).begin()
    with pytest.raises(TrainingError, match="begin one first"):
        QueryRounds(q1(), *nothing).end({"TCP": 1.0})


def test_join_selectivities_estimated_anew_change_the_plan():
    query = q2()
    running = rounds_of(query)
    names = [join.name for join in query.shape.joins]
    running.joins_changed(dict(zip(names, (1e-4, 0.1), strict=True)))
    first = running.begin()
    running.joins_changed(dict(zip(names, (0.1, 1e-4), strict=True)))
    assert running.begin().order != first.order
    assert (running.rebuilt, running.switches) == (2, 1)
