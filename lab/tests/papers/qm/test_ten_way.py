from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from querymesh_lab.bench.limits import limits
from querymesh_lab.papers.qm.rivals import LookUpSubject
from querymesh_lab.papers.qm.ten_way import PARTITIONS, SOURCE, VALUES, TenWay, draw, meeting_chance

SMALL = TenWay(symbols=100, hashed=False)


def subject(design, rows):
    return LookUpSubject(design.query(), SOURCE, design.source(rows)[0], design.partner_tables())


@pytest.mark.parametrize(
    ("distribution", "mean", "variance", "least", "most"),
    [("poisson", 1.0, 1.0, 0, 12), ("uniform", 50.0, 850.0, 0, 100)],
)
def test_values_have_the_statistics_of_table_2(distribution, mean, variance, least, most):
    values = draw(distribution, 100_000, np.random.default_rng(0))
    assert values.mean() == pytest.approx(mean, rel=0.02)
    assert values.var() == pytest.approx(variance, rel=0.03)
    assert values.min() == least
    assert values.max() <= most


def test_in_a_partition_some_attributes_lie_higher_and_are_poisson_there():
    design = TenWay()
    table, partition = design.source(30_000)
    for number in range(VALUES):
        values = np.asarray(table[f"a{number + 1}"])
        for k in range(PARTITIONS):
            own = values[partition == k]
            shifted = design.shift if number % PARTITIONS == k else 0
            assert own.mean() == pytest.approx(1.0 + shifted, abs=0.05)
            assert own.var() == pytest.approx(1.0, rel=0.1)


def test_shifted_uniform_values_stay_uniform():
    table, partition = TenWay("uniform").source(60_000)
    for k in range(PARTITIONS):
        values = np.asarray(table["a1"])[partition == k]
        assert (values.min(), values.max()) == (0, 100)
        assert values.mean() == pytest.approx(50.0, rel=0.02)


@pytest.mark.parametrize("distribution", ["poisson", "uniform"])
def test_a_probe_outside_a_partition_finds_as_many_rows_as_asked_for(distribution):
    design = replace(SMALL, distribution=distribution, shift=0, matches=1.25)
    found = subject(design, 5000).profile(5000).pass_rates()
    assert found.mean() == pytest.approx(1.25, rel=0.1)
    assert meeting_chance(distribution) < 1


def test_a_shifted_probe_mostly_finds_nothing():
    profile = subject(SMALL, 6000).profile(6000)
    partition = SMALL.source(6000)[1]
    by_first = profile.outcomes[partition == 0]
    assert (by_first[:, 0] == 0).mean() > 0.8
    assert (by_first[:, 1] == 0).mean() < 0.6


def test_each_partitions_best_order_differs_from_that_of_the_whole_stream():
    profile = subject(SMALL, 6000).profile(6000)
    partition = SMALL.source(6000)[1]
    even = replace(profile, drop_us=np.ones(10), pass_us=np.ones(10))
    found = limits(even, partition)
    assert found.oracle is not None
    assert len({*found.oracle_routes, found.single_route}) == PARTITIONS + 1
    assert found.single.evaluations / found.oracle.evaluations > 1.5


def test_in_uniform_data_the_partition_says_nothing():
    design = replace(SMALL, distribution="uniform", matches=0.8)
    profile = subject(design, 6000).profile(6000)
    even = replace(profile, drop_us=np.ones(10), pass_us=np.ones(10))
    found = limits(even, design.source(6000)[1])
    assert found.oracle is not None
    assert found.single.evaluations / found.oracle.evaluations < 1.1


def test_pseudonyms_join_what_the_bare_keys_join():
    plain = replace(SMALL, partners=3, matches=1.0)
    hidden = replace(plain, hashed=True)
    both = [subject(design, 400).profile(400).outcomes for design in (plain, hidden)]
    assert Counter(map(tuple, both[0])) == Counter(map(tuple, both[1]))
    assert np.array_equal(*both)


def test_the_same_seed_gives_the_same_data():
    assert TenWay(seed=3).source(50)[0].equals(TenWay(seed=3).source(50)[0])
    assert not TenWay(seed=3).source(50)[0].equals(TenWay(seed=4).source(50)[0])
