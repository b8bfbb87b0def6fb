import numpy as np
import pytest

from profiles import three_classes
from querymesh.classify.tree import Member
from querymesh.errors import OptionError
from querymesh.optimize.adapt.adapt import Adaptation, MeshSaving, better_mesh, consider
from querymesh.optimize.search.lattice import partition
from querymesh.optimize.train.describe import reach
from querymesh.optimize.train.train import train_mesh
from querymesh.optimize.train.training import Training
from simulated_stream import OPPOSITE, OVERHEADS, QUERY, stream, tuples

SWAPPED = np.roll(OPPOSITE, 1, axis=1)


def trained(passes, seed=0, one_route=False):
    profile = tuples(np.random.default_rng(seed), 1500, passes)
    return train_mesh(QUERY, profile, OVERHEADS, Training(seed=seed), one_route=one_route)


def test_a_mesh_that_fits_has_no_challenger():
    mesh = trained(OPPOSITE)
    comparison = consider(
        mesh, tuples(np.random.default_rng(1), 600, OPPOSITE), OVERHEADS, Training()
    )
    assert comparison.rows == 600
    assert abs(comparison.share) < 0.01
    assert not comparison.pays(doubt=2.0, least_gain=0.0)


def test_noise_promises_no_saving():
    """A challenger judged by the tuples it was fitted to would seem to save a tenth."""
    noise = np.full((3, 4), 0.5)
    cheap, searched = [], []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        mesh = train_mesh(QUERY, tuples(rng, 500, noise), OVERHEADS, Training(seed=seed))
        recent = tuples(rng, 100, noise)
        cheap.append(consider(mesh, recent, OVERHEADS, Training()).share)
        searched.append(better_mesh(mesh, recent, OVERHEADS, Training()).saving.share)
    assert abs(np.mean(cheap)) < 0.03
    assert abs(np.mean(searched)) < 0.03


def test_swapped_selectivities_make_other_routes_cheaper_beyond_doubt():
    mesh = trained(OPPOSITE)
    recent = tuples(np.random.default_rng(1), 150, SWAPPED)
    comparison = consider(mesh, recent, OVERHEADS, Training())
    assert comparison.pays(doubt=3.0, least_gain=0.03)
    finding = better_mesh(mesh, recent, OVERHEADS, Training())
    assert finding.saving.pays(doubt=3.0, least_gain=0.03)
    assert finding.saving.rows == 50, "judged on what the search did not see"
    assert finding.mesh.found_by.startswith(
        "iterative-improvement warm-started from the running mesh, "
    )
    best = trained(SWAPPED)
    unseen = tuples(np.random.default_rng(2), 3000, SWAPPED)
    costs = [
        consider(which, unseen, OVERHEADS, Training()).running_us for which in (finding.mesh, best)
    ]
    assert costs[0] <= 1.05 * costs[1]


def test_a_search_finds_kinds_that_the_running_mesh_does_not_tell_apart():
    mesh = trained(np.full((3, 3), 0.5))
    assert mesh.is_single
    recent = three_classes(rows=600)
    finding = better_mesh(mesh, recent, OVERHEADS, Training())
    assert len(finding.mesh.routes) == 3
    assert finding.saving.pays(doubt=3.0, least_gain=0.03)


def test_the_error_of_a_saving_is_that_of_a_mean():
    """The running order is the opposite of the only one that suits both halves."""
    mesh = trained(np.array([[0.1, 0.5, 0.9]]), one_route=True)
    recent = tuples(np.random.default_rng(1), 60, np.array([[0.95, 0.5, 0.05]]))
    compared = consider(mesh, recent, OVERHEADS, Training())
    saved = recent.realized_us((1, 2, 3)) - recent.realized_us((3, 2, 1))
    assert compared.saving_us == pytest.approx(saved.mean())
    assert compared.error_us == pytest.approx(np.std(saved, ddof=1) / np.sqrt(60))
    assert compared.running_us == pytest.approx(recent.realized_us((1, 2, 3)).mean())
    two = recent.take(np.array([0, 1]))
    assert better_mesh(mesh, two, OVERHEADS, Training()).saving.error_us == np.inf
    six = better_mesh(mesh, recent.take(np.arange(6)), OVERHEADS, Training()).saving
    assert six.rows == 2
    assert six.error_us < np.inf


def test_policy_single_gives_a_running_mesh_one_order():
    mesh = trained(OPPOSITE)
    assert not mesh.is_single
    recent = tuples(np.random.default_rng(1), 300, OPPOSITE)
    assert better_mesh(mesh, recent, OVERHEADS, Training(), one_route=True).mesh.is_single
    assert consider(mesh, recent, OVERHEADS, Training(), one_route=True).saving_us < 0


def test_without_a_holdout_a_third_judges():
    recent = tuples(np.random.default_rng(1), 150, SWAPPED)
    finding = better_mesh(trained(OPPOSITE), recent, OVERHEADS, Training(holdout=0.0))
    assert finding.saving.rows == 50


@pytest.mark.parametrize(
    ("saving_us", "error_us", "rows", "pays"),
    [
        (3.1, 1.0, 9, True),
        (3.0, 1.0, 9, False),
        (0.6, 0.1, 9, True),
        (0.5, 0.1, 9, False),
        (9.0, 0.0, 2, True),
        (9.0, 0.0, 1, False),
    ],
)
def test_a_saving_pays_beyond_doubt_and_beyond_the_least_gain(saving_us, error_us, rows, pays):
    compared = MeshSaving(running_us=10.0, saving_us=saving_us, error_us=error_us, rows=rows)
    assert compared.pays(doubt=3.0, least_gain=0.05) is pays
    assert compared.share == pytest.approx(saving_us / 10)
    assert MeshSaving(0.0, 0.0, 0.0, 9).share == 0.0
    assert MeshSaving(0.5, 0.25, 0.0, 9).share == 0.5


def one_route(problem, start, rng, stop):
    """A search that finds nothing but the best single route."""
    return problem.solve(partition([range(problem.training.size)]))


@pytest.mark.parametrize(("alike", "leaves"), [("ab", 2), ("ac", 3), ("bc", 2)])
def test_the_running_classifier_may_get_other_routes_and_asks_no_test_in_vain(alike, leaves):
    """Its first test tells kind c from the others; a test between a and b is needed no more if
    both take the same route, nor that of c if the test between a and b does for it too."""
    mesh = trained(OPPOSITE)
    assert mesh.tree.test == Member("kind", ("c",))
    passes = np.array([[0.1, 0.5, 0.95] if kind in alike else [0.95, 0.5, 0.1] for kind in "abc"])
    recent = tuples(np.random.default_rng(1), 900, passes)
    found = better_mesh(mesh, recent, OVERHEADS, Training(search=one_route)).mesh
    assert set(found.routes) == {(1, 2, 3), (3, 2, 1)}
    assert len(found.leaves) == leaves
    for rows, route in zip(reach(recent, found.tree), found.leaf_routes, strict=True):
        kinds = set(np.asarray(recent.sample["kind"])[rows])
        assert kinds <= set(alike) if route == (1, 2, 3) else not kinds & set(alike)


def test_policy_single_only_ever_gets_another_order():
    mesh = trained(np.array([[0.1, 0.5, 0.9]]), one_route=True)
    recent = tuples(np.random.default_rng(1), 300, np.array([[0.9, 0.5, 0.1]]))
    finding = better_mesh(mesh, recent, OVERHEADS, Training(), one_route=True)
    assert finding.mesh.routes == ((3, 2, 1),)
    assert better_mesh(trained(OPPOSITE, one_route=True), three_classes(), OVERHEADS, Training(),
                       one_route=True).mesh.is_single  # fmt: skip


def test_an_adapted_mesh_keeps_window_and_open_orders_as_training_has_them():
    training = Training(tolerance=0.2)
    profile = tuples(np.random.default_rng(0), 900, np.array([[0.1, 0.5, 0.52]]))
    mesh = train_mesh(QUERY, profile, OVERHEADS, training)
    finding = better_mesh(mesh, profile, OVERHEADS, training)
    assert finding.mesh.window == mesh.window
    assert finding.mesh.uncertain == mesh.uncertain != ()


@pytest.mark.parametrize("seed", range(4))
def test_after_a_swap_evaluations_return_to_the_new_oracle(seed):
    course = stream([OPPOSITE, SWAPPED], seed=seed, batches=40, rows=2000)
    assert max(course.of_oracle[:20]) < 1.1
    assert course.of_oracle[20] > 1.5, "the swap must hurt for this test to mean anything"
    assert max(course.of_oracle[30:]) < 1.1
    assert 1 <= len(course.switches) <= 2
    assert not course.overspent
    switch = course.switches[0]
    assert 20 <= switch.batch < 30
    assert switch.saving > 0.3
    assert " passed " in switch.reason
    assert "µs a row" in switch.reason
    assert course.mesh.why == course.switches[-1].reason


def test_a_single_order_follows_its_data_too():
    regimes = [np.array([[0.1, 0.5, 0.9]]), np.array([[0.9, 0.5, 0.1]])]
    course = stream(regimes, one_route=True)
    assert [course.mesh.routes, len(course.switches)] == [((3, 2, 1),), 1]
    assert max(course.of_oracle[30:]) < 1.02


def test_a_slow_drift_is_followed():
    steps = np.linspace(0.0, 1.0, 30)
    regimes = [(1 - t) * OPPOSITE + t * SWAPPED for t in steps] + [SWAPPED] * 10
    course = stream(regimes, batches=80, rows=2000)
    assert max(course.of_oracle[70:]) < 1.1
    assert not course.overspent


MOST_SWITCHES = 1
"""In 40 stationary streams of 60 batches each: 2,400 batches."""


def test_stationary_streams_do_not_flap():
    """Kinds apart, no kinds, orders of almost equal cost, anything: none has a reason to switch."""
    switches, shares = 0, []
    for seed in range(40):
        rng = np.random.default_rng(1000 + seed)
        regimes = [
            OPPOSITE,
            np.full((3, 3), 0.5),
            np.array([[0.45, 0.5, 0.55]] * 3),
            rng.uniform(0.1, 0.9, (3, 4)),
        ]
        course = stream(
            [regimes[seed % 4]], seed=seed, batches=60, rows=[1000, 4000][seed // 4 % 2]
        )
        switches += len(course.switches)
        shares.append(course.profile_evaluations / course.evaluations)
        assert not course.overspent
    assert switches <= MOST_SWITCHES
    assert max(shares) < 0.01
    assert np.mean(shares) > 0.002, "a watch that profiles nothing would pass all the rest"


def test_noisy_timings_do_not_flap_but_a_dearer_operator_is_moved():
    noise = np.random.default_rng(5)
    flat = np.array([[0.5, 0.5, 0.5]])
    steady = stream(
        [flat],
        batches=60,
        rows=4000,
        cost_us=lambda _: 10 * noise.lognormal(0.0, 0.4, 3) * noise.lognormal(),
    )
    assert len(steady.switches) <= 1
    first = stream([flat], batches=1, cost_us=lambda _: np.full(3, 10.0)).mesh.routes[0][0]

    def dearer(batch):
        us = np.full(3, 10.0)
        us[first - 1] = 100.0 if batch >= 30 else 10.0
        return us * noise.lognormal(0.0, 0.1, 3)

    moved = stream([flat], batches=60, rows=4000, cost_us=dearer)
    assert moved.mesh.routes[0][-1] == first
    assert " cost " in moved.switches[0].reason


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "budget is a share"),
        ({"budget": 1.5}, "budget is a share"),
        ({"half_life_rows": 0}, "half_life_rows must be"),
        ({"profile_rows": 10}, "profile_rows must be"),
        ({"profile_rows": 89}, "profile_rows must be at least 90 to judge a mesh by, not 89"),
        ({"profile_rows": 90.5}, "profile_rows must be an integer, not 90.5"),
        ({"least_gain": 1.0}, "least_gain is a share"),
        ({"least_gain": -0.1}, "least_gain is a share"),
        ({"least_gain": float("nan")}, "least_gain is a share"),
        ({"doubt": -1}, "standard errors"),
    ],
)
def test_impossible_adaptations_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        Adaptation(**options)


def test_the_defaults_are_those_that_are_documented():
    assert Adaptation() == Adaptation(
        budget=0.01, half_life_rows=2000, profile_rows=2000, least_gain=0.03, doubt=3.0
    )


def test_the_bounds_of_an_adaptation_are_allowed():
    least = Adaptation(budget=1, half_life_rows=1, profile_rows=90, least_gain=0, doubt=0)
    assert (least.budget, least.least_gain, least.doubt) == (1, 0, 0)
