import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querymesh.index.probe.access_row import suitable
from querymesh.index.probe.one_state import probe
from querymesh.index.store.configuration import Configuration, evenly, in_sequence
from querymesh.index.store.index_plan import BitPlan, HashPlan, plan_from_json, plan_of
from querymesh.index.store.request import Request
from querymesh.index.store.stem import Stem
from soak import random_cases
from stem_cases import KEYS, ORDERS, Row, expected, found, ints, partition_of, requests, states

PATTERNS = st.sets(st.integers(0, KEYS - 1), min_size=1).map(lambda some: tuple(sorted(some)))


@st.composite
def configurations(draw):
    bits = draw(st.lists(st.integers(0, 3), min_size=KEYS + ORDERS, max_size=KEYS + ORDERS))
    return Configuration(tuple(bits), KEYS, tuple(draw(st.permutations(range(KEYS + ORDERS)))))


plans = (
    configurations().map(BitPlan)
    | st.builds(HashPlan, st.none() | st.lists(PATTERNS, unique=True, max_size=3).map(tuple))
    | st.builds(HashPlan, st.none(), PATTERNS)
)


def stem_of(partitions, chosen):
    stem = Stem(plan=chosen[-1])
    for number, rows in enumerate(partitions):
        stem.insert(chosen[number % len(chosen)].lay_out(partition_of(rows)))
    return stem


several_plans = st.lists(plans, min_size=1, max_size=3)


def test_the_bucket_of_the_papers_package_is_250():
    configuration = Configuration((5, 2, 3), keys=3)
    assert configuration.bucket((0b00111, 0b11, 0b010)) == 250
    assert configuration.buckets({0: 0b00111, 2: 0b010}) == [226, 234, 242, 250]


@random_cases(150, 300)
@given(states(), requests(), several_plans, st.sampled_from([1, 2, 7, 1000]))
def test_any_plans_of_partitions_find_what_a_double_loop_finds(partitions, request, chosen, most):
    stem = stem_of(partitions, chosen)
    assert found(stem, request, most) == expected(partitions, request)


@random_cases(100, 200)
@given(states(), requests(), several_plans, plans, st.data())
def test_any_migration_at_any_moment_changes_no_result(partitions, request, chosen, new, data):
    stem = stem_of(partitions, chosen)
    stem.plan = new
    moves = st.lists(st.booleans(), min_size=len(partitions), max_size=len(partitions))
    before = [plan_of(partition) for partition in stem.partitions]
    moved = data.draw(moves)
    stem.replan(moved)
    assert found(stem, request) == expected(partitions, request)
    for partition, had, move in zip(stem.partitions, before, moved, strict=True):
        assert new.suits(partition) if move else plan_of(partition) == had
    stem.compact(data.draw(st.none() | st.integers(0, 60)))
    assert found(stem, request) == expected(partitions, request)


def many(rows, distinct, seed=0):
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, distinct, (rows, KEYS))
    return [
        Row(n, tuple(keys[n].tolist()), (int(keys[n, 0]), n), 5, None) for n in range(rows)
    ]  # fmt: skip


def ask(pattern, codes_):
    width = len(codes_[0])
    return Request(pattern, tuple(map(ints, codes_)), ints([0] * width), ints([9] * width))


def test_a_probe_looks_at_the_share_of_rows_that_its_bits_leave():
    rows = many(4096, 1000)
    stem = stem_of([rows], [BitPlan(Configuration((6, 4, 0, 0, 0), KEYS))])
    keys = list(range(200))
    for pattern, share in (((0,), 1 / 64), ((1,), 1 / 16), ((0, 1), 1 / 1024), ((2,), 1)):
        before = stem.comparisons
        list(probe(stem, ask(pattern, [keys] * len(pattern)), 10_000))
        looked = (stem.comparisons - before) / len(keys) / len(rows)
        assert looked == pytest.approx(share, rel=0.15)


def test_cells_are_evened_out_though_values_are_not():
    frequent = [7] * 800 + [8] * 800 + [9] * 800
    keys = np.concatenate([frequent, np.arange(1000, 1800)])
    rows = [Row(n, (int(key), 0, 0), (0, 0), 5, None) for n, key in enumerate(keys)]
    cells = BitPlan(Configuration((2, 0, 0, 0, 0), KEYS)).lay_out(partition_of(rows)).cells
    assert np.diff(cells.offsets).max() < 850
    assert len({int(cells.cells(0, ints([key]))[0]) for key in (7, 8, 9)}) == 3


def test_cells_of_an_order_attribute_are_quantiles():
    rows = [Row(n, (0, 0, 0), (n * n, 0), 5, None) for n in range(1024)]
    cells = BitPlan(Configuration((0, 0, 0, 3, 0), KEYS)).lay_out(partition_of(rows)).cells
    assert np.diff(cells.offsets).tolist() == [128] * 8


def test_an_index_takes_four_bytes_a_row_at_most_and_a_table_for_few_bits():
    rows = many(5000, 1000)
    laid = BitPlan(Configuration((9, 4, 3, 0, 0), KEYS)).lay_out(partition_of(rows))
    tables = sum(table.nbytes for table in laid.cells.tables.values())
    assert laid.cells.offsets.nbytes <= 4 * (len(rows) + 1)
    assert tables <= 2 * 4096
    assert laid.index_bytes == laid.cells.offsets.nbytes + tables


def test_a_probe_that_specifies_no_bits_looks_at_all_rows_once():
    rows = many(300, 5)
    stem = stem_of([rows], [BitPlan(Configuration((8, 0, 0, 0, 0), KEYS))])
    list(probe(stem, ask((1,), [[3]]), 1000))
    assert stem.comparisons == 300


def test_the_largest_hash_index_within_the_pattern_is_taken():
    assert suitable((0, 1, 2), [(0,), (1, 2), (0, 3)]) == (1, 2)
    assert suitable((2,), [(0,), (1, 2)]) == ()


@given(plans)
def test_plans_survive_json(chosen):
    assert plan_from_json(chosen.to_json()) == chosen


def test_bits_are_shared_evenly_or_by_who_is_asked_most():
    assert evenly(7, 3, 3).bits == (3, 2, 2)
    assert in_sequence((1, 1, 2), 3, {(1,): 0.5, (0, 1): 0.2, (2,): 0.3}).sequence == (1, 2, 0)


def test_a_configuration_says_what_is_wrong_with_it():
    with pytest.raises(ValueError, match="0 to 20 bits"):
        Configuration((30,), 1)
    with pytest.raises(ValueError, match="no sequence"):
        Configuration((3, 4), 2, (0, 0))
