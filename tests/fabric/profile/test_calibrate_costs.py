"""What Table 3's joins cost on join states."""

import pytest

from querymesh.fabric.profile.calibrate_costs import HASHED, NESTED, spent, table_3

ASKING, FEW, MANY = 200, 1000, 32_000


@pytest.fixture(scope="module")
def runs():
    return {(kind, n): spent(kind, ASKING, n) for kind in (NESTED, HASHED) for n in (FEW, MANY)}


def test_all_costs_are_positive_and_each_algorithm_has_its_own():
    found = table_3()
    looped, hashed = found.nested_loops, found.symmetric_hash
    assert (looped.algorithm, hashed.algorithm) == (NESTED, HASHED)
    assert looped.move_s == hashed.move_s > 0
    assert min(looped.comp_s, hashed.hash_s, hashed.probe_s) > 0
    assert looped.hash_s == looped.probe_s == hashed.comp_s == 0
    assert looped.arrival_s(1e6) > hashed.arrival_s(1e6), "a million rows are worth an index"


def test_without_an_index_an_arrival_looks_at_every_stored_row(runs):
    assert runs[NESTED, FEW].looked == ASKING * FEW
    assert runs[NESTED, MANY].looked == ASKING * MANY


def test_with_hash_indices_it_looks_at_a_few_however_many_there_are(runs):
    for stored in (FEW, MANY):
        assert ASKING <= runs[HASHED, stored].looked < 5 * ASKING


def test_the_time_of_nested_loops_grows_with_what_is_stored_and_that_of_hashing_hardly(runs):
    looped, hashed = (
        runs[kind, MANY].probe_s / runs[kind, FEW].probe_s for kind in (NESTED, HASHED)
    )
    assert looped > 2 * hashed
    assert looped < 10 * MANY / FEW
