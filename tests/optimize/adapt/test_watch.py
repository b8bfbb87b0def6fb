"""What a watch says, batch by batch, of a mesh on a stream that is made by hand."""

from dataclasses import replace

import numpy as np
import pytest

from profiles import profile_of, three_classes
from querymesh.optimize.adapt.adapt import LEAST_ROWS, Adaptation
from querymesh.optimize.adapt.budget import BURST_ROWS
from querymesh.optimize.adapt.watch import Observation, Watch
from querymesh.optimize.train.train import train_mesh
from querymesh.optimize.train.training import Training
from querymesh.stats.costs import Timing
from simulated_stream import OPPOSITE, OVERHEADS, QUERY, tuples, visits_of

SWAPPED = np.roll(OPPOSITE, 1, axis=1)


def watching(mesh, adaptation=None, measured=(False,) * 3, profile=None):
    chosen = adaptation or Adaptation()
    return Watch(mesh, OVERHEADS, Training(), chosen, False, list(measured), profile)


def mesh_of(passes=OPPOSITE):
    return train_mesh(QUERY, tuples(np.random.default_rng(0), 1500, passes), OVERHEADS)


def batch_of(number, profiles=(), rows=1000, visits=None):
    visits = visits or {}
    done = np.full(3, float(rows))
    profiled = np.full(3, float(sum(profile.rows for profile in profiles)))
    return Observation(number, rows, 1, visits, done, profiled, list(profiles))


def looks_at(watch, rows_each, batches):
    """When looks were due, as profiled rows so far, and whether each was thorough."""
    due = []
    for number in range(1, batches + 1):
        watch.observe(batch_of(number, [three_classes(rows_each, seed=number)]))
        look = watch.look()
        if look is not None:
            due.append((number * rows_each, look.thorough))
    return due


def test_looks_grow_rarer_and_a_thorough_one_comes_whenever_the_rows_have_doubled():
    watch = watching(mesh_of(), Adaptation(profile_rows=400))
    assert LEAST_ROWS == 90
    thorough = (90, 180, 360, 720, 1140, 1560)  # 400 after 720: a renewal of the profile
    others = (270, 450, 570, 690, 840, 960, 1080, 1260, 1380, 1500, 1680, 1800)  # a quarter of it
    due = sorted([(rows, True) for rows in thorough] + [(rows, False) for rows in others])
    assert looks_at(watch, 30, 60) == due


def test_a_profile_at_hand_is_looked_at_again_when_there_are_more_rows_and_searched_when_twice():
    watch = watching(mesh_of(), profile=three_classes(600))
    assert looks_at(watch, 30, 30) == [(90, False), (270, False), (510, False), (600, True),
                                       (900, False)]  # fmt: skip
    watch = watching(mesh_of(), profile=three_classes(600))
    watch.observe(batch_of(1, [three_classes(90, seed=1)]))
    assert watch.look().profile.rows == 690


def test_a_look_has_what_a_search_needs():
    costs = np.array([[10.0, 11.0, 12.0], [20.0, 21.0, 22.0]])
    profile = three_classes(900)
    dear = profile_of(profile.outcomes, costs, sample=profile.sample)
    mesh = train_mesh(QUERY, dear, OVERHEADS)
    adaptation = Adaptation(doubt=2.0)
    watch = watching(mesh, adaptation, profile=dear)
    watch.observe(batch_of(1, [three_classes(90)]))
    look = watch.look()
    assert look.profile.drop_us.tolist() == [10.0, 11.0, 12.0]
    assert look.profile.pass_us.tolist() == [20.0, 21.0, 22.0]
    assert (look.mesh, look.overheads, look.adaptation) == (mesh, OVERHEADS, adaptation)
    assert (look.training, look.one_route, look.changed, look.epoch) == (Training(), False, "", 0)


def drifted(mesh, **options):
    """A watch on a stream whose selectivities have swapped, and the batch that showed it."""
    rng = np.random.default_rng(3)
    watch = watching(mesh, **options)
    for number in range(40):
        profile = tuples(rng, 4000, OPPOSITE if number < 20 else SWAPPED)
        visits = visits_of(mesh, profile)
        watch.observe(batch_of(number, rows=40_000, visits=visits))
        if watch.alarmed:
            return watch, number
    raise AssertionError("no drift was noticed")


def test_drift_sets_older_rows_aside_and_asks_for_a_burst_that_shrinks_as_it_is_served():
    mesh = mesh_of()
    watch, number = drifted(mesh, profile=three_classes(600))
    assert 20 <= number < 30
    assert watch.epoch == 1
    assert watch.ask.batch == number + 1
    assert (watch.ask.most, watch.ask.tasks) == (BURST_ROWS, 1)
    assert watch.look() is None, "what was profiled before tells nothing"
    watch.observe(batch_of(number + 1, [tuples(np.random.default_rng(4), 400, SWAPPED)], 40_000))
    assert watch.ask.most == BURST_ROWS - 400
    look = watch.look()
    assert look.thorough
    assert look.epoch == 1
    assert look.profile.rows == 400
    found = look.finding()
    switch = look.switch(found, version=5, batch=number + 1)
    assert (switch.version, switch.batch) == (5, number + 1)
    assert switch.saving == found.saving.share > 0.3
    assert switch.reason == found.mesh.why
    watch.installed(found.mesh)
    assert not watch.alarmed
    watch.observe(batch_of(number + 2, [tuples(np.random.default_rng(5), 700, SWAPPED)], 40_000))
    assert watch.ask.tasks == 0, "the burst is served"


def test_the_reason_names_where_the_largest_shift_was_and_what_it_saves():
    mesh = mesh_of()
    watch, number = drifted(mesh)
    watch.observe(batch_of(number + 1, [tuples(np.random.default_rng(4), 400, SWAPPED)], 40_000))
    look = watch.look()
    shift, _, rest = look.finding().mesh.why.partition(": ")
    name, _, where = shift.partition(" where ")
    assert look.changed == shift
    assert name in {"p1", "p2", "p3"}
    assert where.startswith("kind ")
    assert " passed " in where
    compared = look.finding().saving
    after_us = compared.running_us - compared.saving_us
    assert rest == (
        f"{compared.running_us:.3g} -> {after_us:.3g} µs a row on 133 of 400 profiled rows, "
        f"kept back (± {compared.error_us:.2g})"
    )


def test_the_leaf_with_the_largest_shift_is_named_by_its_path():
    mesh = mesh_of()
    texts = set()
    for leaf in range(len(mesh.leaves)):
        watch = watching(mesh)
        for number in range(30):
            passed, elsewhere = (500, 4500) if number < 20 else (2500, 3900)
            visits = {
                (k, 1): Timing(1, 5000, passed if k == leaf else elsewhere, 0.0) for k in range(3)
            }
            watch.observe(batch_of(number, rows=40_000, visits=visits))
            if watch.alarmed:
                break
        watch.observe(batch_of(number + 1, [three_classes(90)], rows=40_000))
        texts.add(watch.look().changed)
    assert len(texts) == 3
    assert all(text.startswith("p1 where kind ") for text in texts)
    assert all(" passed 10% and now " in text for text in texts), "the largest of the shifts"
    assert sum(" and kind " in text for text in texts) == 2


def test_an_operator_that_becomes_dearer_is_looked_at_at_once_and_named():
    profile = tuples(np.random.default_rng(0), 1500, np.full((1, 3), 0.5), np.full(3, 10.0))
    mesh = train_mesh(QUERY, profile, OVERHEADS)
    watch = watching(mesh, measured=[True] * 3, profile=profile)
    order = mesh.routes[0]
    for number in range(40):
        us = [10.0, 10.0, 10.0] if number < 10 else [100.0, 10.0, 10.0]
        visits = {
            (0, operator): Timing(1, 8000, 4000, 8e-3 * us[position])
            for position, operator in enumerate(order)
        }
        watch.observe(batch_of(number, rows=8000, visits=visits))
        if watch.alarmed:
            break
    look = watch.look()
    assert look.thorough, "without a new profiled row"
    assert look.changed.startswith(f"p{order[0]} cost 10 and now ")
    assert look.changed.endswith(" µs beside the others")
    assert look.profile.drop_us[order[0] - 1] > 3 * look.profile.drop_us[order[1] - 1]
    assert watch.epoch == 0, "the data is as it was"
    assert look.finding().mesh.routes[0][-1] == order[0]


def test_a_cost_that_changes_before_there_are_enough_rows_is_looked_at_when_there_are():
    watch = watching(mesh_of(np.full((1, 3), 0.5)), measured=[True] * 3)
    for number in range(40):
        us = [1.0, 1.0, 1.0] if number < 10 else [30.0, 1.0, 1.0]
        visits = {(0, k + 1): Timing(1, 8000, 4000, 8e-3 * us[k]) for k in range(3)}
        watch.observe(batch_of(number, rows=8000, visits=visits))
    assert watch.alarmed
    assert watch.look() is None
    watch.observe(batch_of(40, [three_classes(LEAST_ROWS - 1)]))
    assert watch.look() is None
    watch.observe(batch_of(41, [three_classes(1)]))
    assert watch.look().thorough


def test_a_quick_look_does_not_search_where_other_routes_would_not_pay():
    """Kinds that the running mesh does not tell apart are found by a thorough look alone."""
    mesh = mesh_of(np.full((3, 3), 0.5))
    assert mesh.is_single
    watch = watching(mesh, profile=three_classes(600))
    watch.observe(batch_of(1, [three_classes(90, seed=1)]))
    look = watch.look()
    assert not look.thorough
    assert look.finding() is None
    found = replace(look, thorough=True).finding()
    assert len(found.mesh.routes) == 3
    assert found.mesh.why.startswith("a cheaper mesh was found: ")


@pytest.mark.parametrize("wanted", [{"least_gain": 0.9}, {"doubt": 1000.0}])
@pytest.mark.parametrize("thorough", [True, False])
def test_what_saves_too_little_or_not_for_sure_is_no_finding(wanted, thorough):
    watch = watching(mesh_of(), Adaptation(**wanted))
    watch.observe(batch_of(1, [tuples(np.random.default_rng(1), 300, SWAPPED)]))
    look = replace(watch.look(), thorough=thorough)
    assert look.finding() is None
    assert replace(look, adaptation=Adaptation()).finding() is not None


def test_an_empty_batch_changes_nothing():
    watch = watching(mesh_of())
    watch.observe(Observation(0, 0, 0, {}, np.zeros(3), np.zeros(3)))
    assert watch.ask.share == 0.0
    assert watch.look() is None
