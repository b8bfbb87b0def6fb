import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from profiles import profile_of, profiles_with_kinds, random_profiles, three_classes
from querymesh.classify.tree import attributes_of
from querymesh.cost.route_time import Overheads
from querymesh.errors import QueryMeshError, TrainingError
from querymesh.mesh.mesh import written_order
from querymesh.optimize.search.iterative_improvement import iterative_improvement
from querymesh.optimize.search.stop import Stop
from querymesh.optimize.train.describe import best_single, costs_us
from querymesh.optimize.train.folds import Fold
from querymesh.optimize.train.train import train_judged, train_mesh
from querymesh.optimize.train.training import Training
from querymesh.query.parse.query import query

OVERHEADS = Overheads(node_us=0.005, ruster_us=20.0, window=10_000)
QUERY = query("SELECT * FROM t")


def trained(profile, **kwargs):
    return train_mesh(QUERY, profile, OVERHEADS, **kwargs)


def test_three_classes_with_opposite_selectivities_get_a_route_each():
    profile = three_classes()
    mesh = trained(profile)
    assert len(mesh.routes) == 3
    assert attributes_of(mesh.tree) == {"kind"}
    assert {route[0] for route in mesh.routes} == {1, 2, 3}
    oracle = sum(
        of.realized_us(best_single(of)).sum()
        for of in (
            profile.take(np.flatnonzero(np.asarray(profile.sample["kind"]) == kind))
            for kind in "abc"
        )
    )
    assert mesh.expected_us <= 1.01 * oracle / profile.rows
    assert mesh.bound_us <= mesh.expected_us < 0.7 * mesh.single_us
    assert {entry.name for entry in mesh.left_out} == {"id"}


@pytest.mark.parametrize("seed", range(10))
def test_uniform_data_gets_a_single_route(seed):
    mesh = trained(three_classes(seed=seed, opposite=False))
    assert mesh.is_single
    assert mesh.expected_us == mesh.single_us


@given(
    st.one_of(random_profiles(most_rows=60), profiles_with_kinds()),
    st.sampled_from([0.005, 0.5, 2.0]),
)
@settings(max_examples=120, deadline=None)
def test_a_mesh_never_costs_more_than_the_best_single_route(profile, node_us):
    overheads = Overheads(node_us, ruster_us=20.0, window=10_000)
    mesh = train_mesh(QUERY, profile, overheads)
    assert mesh.expected_us <= mesh.single_us + 1e-9
    row_us = costs_us(profile, mesh.tree, mesh.routes, overheads)
    assert mesh.expected_us == pytest.approx(row_us.mean())
    every = tuple(range(1, profile.operators + 1))
    assert all(tuple(sorted(route)) == every for route in mesh.routes)


def test_profiles_with_kinds_lead_to_meshes():
    """Without these the test above would compare single routes with themselves."""
    find(
        profiles_with_kinds(),
        lambda profile: not trained(profile).is_single,
        settings=settings(phases=[Phase.generate]),
    )


def judging_by(unseen):
    """A judge with one fold, whose mesh is learned from all rows but these."""

    def judge(rows, holdout, folds, rng):
        return [Fold(np.setdiff1d(np.arange(rows), unseen), unseen)]

    return judge


def opposed_classes(turned):
    """Rows of three classes; in the second half each class is dropped as `turned` says."""
    profile = three_classes(1200)
    outcomes = profile.outcomes.copy()
    outcomes[600:] = turned(outcomes[600:])
    return profile_of(outcomes, [10.0, 11.0, 12.0], sample=profile.sample)


@pytest.mark.parametrize(
    "turned",
    [
        pytest.param(lambda outcomes: np.roll(outcomes, 1, axis=1), id="the opposite"),
        pytest.param(np.ones_like, id="no difference"),
    ],
)
def test_a_mesh_that_unseen_tuples_contradict_is_refused(turned):
    profile = opposed_classes(turned)
    free = Overheads(0.0, 0.0, 1)
    judge = judging_by(np.arange(600, 1200))
    mesh = train_mesh(QUERY, profile, free, Training(judge=judge))
    assert mesh.is_single
    assert mesh.routes == (best_single(profile),)
    assert mesh.why == (
        "a mesh of 3 routes was found, but on 600 tuples it had not seen its saving could be chance"
    )
    fair = train_mesh(QUERY, three_classes(1200), free, Training(judge=judge))
    assert len(fair.routes) == 3


@pytest.mark.parametrize(("dropped_by", "routes"), [((3, 3), 3), ((3, 1), 1), ((3,), 3), ((1,), 1)])
def test_a_saving_within_its_standard_error_is_refused(dropped_by, routes):
    """A tuple of kind c that operator 3 drops saves 21 µs over order 1, 2, 3; one that operator 1
    drops loses 12: a mean of 4.5 with a standard error of 16.5."""
    profile = three_classes(1200)
    rows = np.flatnonzero(np.asarray(profile.sample["kind"]) == "c")[: len(dropped_by)]
    for row, operator in zip(rows, dropped_by, strict=True):
        profile.outcomes[row] = 1.0
        profile.outcomes[row, operator - 1] = 0.0
    assert best_single(profile)[0] == 1
    mesh = train_mesh(QUERY, profile, OVERHEADS, Training(judge=judging_by(rows)))
    assert len(mesh.routes) == routes


def test_a_mesh_that_a_single_route_undercuts_on_the_whole_sample_is_refused():
    """Each of two kinds has a best route, but one in between suits both almost as well, and is
    cheaper than the tests. A search that ends at its start does not meet it, and a judge that keeps
    nothing back does not miss it."""
    rng = np.random.default_rng(0)
    kind = np.arange(2000) % 2
    rates = np.array([[0.30, 0.32, 0.99], [0.99, 0.32, 0.30]])
    outcomes = (rng.random((2000, 3)) < rates[kind]).astype(float)
    sample = pa.table({"kind": pa.array(np.array(["a", "b"])[kind])})
    profile = profile_of(outcomes, [10.0, 10.0, 10.0], sample=sample)
    training = Training(start="extreme-n", stop=Stop(partitions=1), judge=judging_by(np.arange(0)))
    dear = Overheads(node_us=2.0, ruster_us=0.0, window=1)
    mesh = train_mesh(QUERY, profile, dear, training)
    assert mesh.why == "over the whole sample the best single route costs less"
    assert mesh.routes == (best_single(profile),)
    assert mesh.routes[0][0] == 2
    assert mesh.expected_us == mesh.single_us
    assert len(train_mesh(QUERY, profile, OVERHEADS, training).routes) == 2


def test_a_seed_gives_the_same_mesh_again():
    profile = three_classes(seed=3)
    again = [trained(profile, training=Training(seed=5)) for _ in range(2)]
    assert again[0] == again[1]


def test_overheads_that_no_route_can_pay_for_leave_one_route():
    mesh = train_mesh(QUERY, three_classes(), Overheads(node_us=50.0, ruster_us=0.0, window=10))
    assert mesh.is_single


def test_zero_and_one_operators_have_one_route():
    assert trained(profile_of(np.ones((5, 0)))).routes == ((),)
    assert trained(profile_of(np.ones((5, 1)))).routes == ((1,),)


@pytest.mark.parametrize(
    ("dropped", "cost_us", "accuracy"),
    [
        (4, (10.0, 10.0), 1 - (20 - 16) / 16),
        (0, (0.1, 0.1), 1.0),
        (10, (1.0, 10.0), 0.0),
        (10, (0.0, 10.0), 0.0),
        (10, (0.0, 0.0), 1.0),
    ],
)
def test_accuracy_is_how_well_the_seen_tuples_foretell_the_unseen(dropped, cost_us, accuracy):
    """Ten seen tuples pass both operators; the first drops some of ten unseen ones."""
    outcomes = np.ones((20, 2))
    outcomes[10 : 10 + dropped] = 0
    profile = profile_of(outcomes, cost_us, [frozenset(), frozenset({1})])
    mesh = trained(profile, training=Training(judge=judging_by(np.arange(10, 20))))
    assert mesh.accuracy == pytest.approx(accuracy)


@pytest.mark.parametrize(
    ("training", "measured"),
    [
        (Training(), False),
        (Training(judge="holdout"), False),
        (Training(judge="holdout", accuracy=0.5), True),
        (Training(judge="bootstrap"), True),
        (Training(accuracy=0.5), True),
    ],
)
def test_accuracy_is_told_where_it_is_asked_for_or_a_judge_that_measures_it(training, measured):
    assert (trained(three_classes(90), training=training).accuracy is not None) is measured


def test_the_mesh_of_one_fold_is_the_result_and_of_several_it_is_learned_from_all_rows():
    profile = three_classes(600)
    searched = []

    def watched(problem, start, rng, stop):
        searched.append(problem.training.profile.rows)
        return iterative_improvement(problem, start, rng, stop)

    trained(profile, training=Training(search=watched, holdout=0.25))
    assert searched == [450]
    searched.clear()
    trained(profile, training=Training(search=watched, judge="cross-validation", folds=3))
    assert searched == [400, 400, 400, 600]
    searched.clear()
    trained(profile, training=Training(search=watched, judge="cross-validation", folds=2))
    assert searched == [300, 300, 600]
    searched.clear()
    trained(profile, training=Training(search=watched, judge=lambda *_: []))
    assert searched == [600]


def test_a_tuple_that_judges_twice_counts_once():
    """Of four tuples in two folds each, two save 21 µs and two lose 12: the mean is 4.5, and its
    standard error that of four tuples and not of eight."""
    profile = three_classes(1200)
    rows = np.flatnonzero(np.asarray(profile.sample["kind"]) == "c")[:40]
    for k, row in enumerate(rows):
        profile.outcomes[row] = 1.0
        profile.outcomes[row, 2 if k % 2 == 0 else 0] = 0.0
    every = np.arange(1200)

    def folds_of(times):
        fold = Fold(np.setdiff1d(every, rows), rows)
        return lambda *_: [fold] * times

    once = trained(profile, training=Training(judge=folds_of(1)))
    # 40 tuples: 4.5 > 16.7 / sqrt(40) = 2.6, whether each is judged once or many times.
    many = trained(profile, training=Training(judge=folds_of(4)))
    assert len(many.routes) == 3
    assert len(once.routes) == 2, "and by one fold's tuples the leaf whose route they gainsay folds"
    few = rows[:12]
    rows = few
    once = trained(profile, training=Training(judge=folds_of(1)))
    many = trained(profile, training=Training(judge=folds_of(4)))
    assert once.is_single
    assert many.is_single, "4.5 <= 17.2 / sqrt(12) = 5.0, and no more is known by asking again"


def test_policy_single_is_the_best_single_route():
    profile = three_classes()
    assert trained(profile, one_route=True).routes == (best_single(profile),)


def test_an_empty_sample_is_refused():
    with pytest.raises(TrainingError, match="the sample is empty"):
        trained(profile_of(np.ones((0, 2))))


def test_unknown_strategies_list_the_known_ones():
    with pytest.raises(QueryMeshError, match="route-driven"):
        Training(start="route-drven")
    with pytest.raises(QueryMeshError, match="did you mean 'iterative-improvement'"):
        Training(search="iterativ-improvement")


def test_an_untrained_mesh_runs_the_order_as_written_except_for_precedence():
    mesh = written_order(QUERY, ("a", "b"), (frozenset({2}), frozenset()))
    assert mesh.routes == ((2, 1),)
    assert mesh.sample_rows == 0


def test_a_mesh_that_saves_within_its_error_is_in_doubt():
    outcomes = []
    for seed in range(60):
        trained_on = three_classes(rows=60, seed=seed)
        outcomes.append(train_judged(QUERY, trained_on, OVERHEADS))
    doubtful = [each for each in outcomes if each.in_doubt]
    assert all("could be chance" in each.mesh.why for each in doubtful)
    assert doubtful
    assert not train_judged(QUERY, three_classes(), OVERHEADS).in_doubt


@pytest.mark.parametrize("judge", ["holdout", "cross-validation", "bootstrap"])
@pytest.mark.parametrize("search", ["iterative-improvement", "simulated-annealing", "optimal"])
def test_training_that_runs_out_of_time_keeps_the_best_it_has_and_says_so(search, judge):
    training = Training(search=search, judge=judge, seconds=1e-9, training_tuples=10)
    mesh = train_mesh(QUERY, three_classes(), OVERHEADS, training)
    assert sorted(mesh.routes[0]) == [1, 2, 3]
    assert "1 partition of" in mesh.found_by, "the start, and nothing beyond it"
    assert mesh.found_by.endswith("seconds had passed")


def test_fifty_operators_and_ten_thousand_categories_are_a_bounded_search():
    rng = np.random.default_rng(0)
    rows, operators = 600, 50
    kind = rng.integers(0, 2, rows)
    outcomes = (rng.random((rows, operators)) < 0.9).astype(float)
    outcomes[:, 0], outcomes[:, 49] = kind, 1 - kind
    names = [f"name-{number}" for number in rng.integers(0, 10_000, rows)]
    few = [f"name-{number}" for number in rng.integers(0, 250, rows)]
    sample = pa.table({"name": names, "few": few, "kind": pa.array(kind)})
    profile = profile_of(outcomes, sample=sample)
    mesh = train_mesh(QUERY, profile, OVERHEADS, Training(stop=Stop(partitions=40)))
    assert attributes_of(mesh.tree) == {"kind"}
    assert {route[0] for route in mesh.routes} == {1, 50}
    assert [left.name for left in mesh.left_out] == ["name"]


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "5", True])
def test_a_time_limit_is_a_time_above_0_or_none(seconds):
    with pytest.raises(QueryMeshError, match="seconds"):
        Training(seconds=seconds)
    assert Training(seconds=None).seconds is None
