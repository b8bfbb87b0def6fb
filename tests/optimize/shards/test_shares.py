import time
from itertools import combinations, product
from math import prod
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querymesh.errors import QueryError
from querymesh.mesh.hypercube import Dimension, Hypercube, join_dimensions, rows_of
from querymesh.optimize.shards.share_search import ShareSearch, alike, divisors
from querymesh.optimize.shards.shares import best_shards_at_most, choose_shares
from querymesh.report.text.shares_text import query_shapes, shard_tables, shares_text

DOCS = Path(__file__).parents[3] / "docs" / "guide" / "shards.md"


def all_shares(dimensions, shards):
    """Every way to write a number as an ordered product."""
    if dimensions == 0:
        if shards == 1:
            yield ()
        return
    for share in divisors(shards):
        for rest in all_shares(dimensions - 1, shards // share):
            yield (share, *rest)


def sent(dimensions, shares, rates):
    return sum(
        rate * prod(n for d, n in zip(dimensions, shares, strict=True) if s not in d.owners)
        for s, rate in rates.items()
    )


@st.composite
def problems(draw, most_dimensions=6):
    streams = "abcde"[: draw(st.integers(1, 5))]
    some = st.frozensets(st.sampled_from(streams), min_size=1)
    owners = draw(st.lists(some, min_size=1, max_size=most_dimensions))
    dimensions = [Dimension(f"d{i}", own) for i, own in enumerate(owners)]
    rate = st.one_of(st.just(1.0), st.integers(0, 4).map(float), st.floats(0.01, 100))
    return dimensions, {s: draw(rate) for s in streams}


@st.composite
def cubes(draw):
    dimensions, rates = draw(problems(4))
    shares = tuple(draw(st.integers(1, 4)) for _ in dimensions)
    return Hypercube(tuple(dimensions), shares, prod(shares)), rates


@settings(max_examples=300, deadline=None)
@given(problems(), st.sampled_from([1, 2, 3, 4, 6, 7, 8, 12, 16, 18, 24, 30, 36]))
def test_no_factorisation_sends_fewer_rows(problem, shards):
    dimensions, rates = problem
    cube = choose_shares(dimensions, rates, shards)
    if not any(rates.values()):
        rates = dict.fromkeys(rates, 1.0)
    least = min(sent(dimensions, s, rates) for s in all_shares(len(dimensions), shards))
    assert prod(cube.shares) == shards
    assert sent(dimensions, cube.shares, rates) == pytest.approx(least, rel=1e-8)


@settings(max_examples=150, deadline=None)
@given(problems(5), st.sampled_from([2, 4, 6, 8, 12]))
def test_of_equal_solutions_early_dimensions_have_the_largest_shares(problem, shards):
    dimensions, rates = problem
    rates = {stream: float(round(rate)) or 1.0 for stream, rate in rates.items()}
    cube = choose_shares(dimensions, rates, shards)
    every = list(all_shares(len(dimensions), shards))
    least = min(sent(dimensions, s, rates) for s in every)
    # Dimensions whose owners another has too are never cut, also where that would cost the same.
    useful = [
        not any(
            d.owners < other.owners or (d.owners == other.owners and e < i)
            for e, other in enumerate(dimensions)
        )
        for i, d in enumerate(dimensions)
    ]
    equals = [
        s
        for s in every
        if sent(dimensions, s, rates) == least
        and all(use or share == 1 for use, share in zip(useful, s, strict=True))
    ]
    assert cube.shares == max(equals)


@settings(max_examples=150, deadline=None)
@given(problems(5), st.sampled_from([2, 4, 6, 12]))
def test_the_bound_is_never_above_what_a_solution_costs(problem, shards):
    dimensions, rates = problem
    owners = [tuple("abcde".index(s) for s in sorted(d.owners)) for d in dimensions]
    floor = ShareSearch(owners, list(rates.values()), shards).floor()
    least = min(sent(dimensions, s, rates) for s in all_shares(len(dimensions), shards))
    assert floor <= least * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize(
    ("owners", "rates", "shards", "least"),
    [
        ([(0,), (1,)], [1.0, 1.0], 4, 4.0),
        ([(0,), (1,)], [1.0, 1.0], 36, 12.0),
        ([(0, 1)], [1.0, 2.0], 12, 3.0),
        ([(0, 1), (1, 2), (0, 2)], [1.0, 1.0, 1.0], 8, 6.0),
        ([(0, 1), (0,)], [3.0, 1.0], 6, 4.0),
    ],
)
def test_the_bound_is_what_the_best_shares_cost_where_these_are_even(owners, rates, shards, least):
    """A bound that is too low is not wrong, but the search then looks at everything."""
    assert ShareSearch(owners, rates, shards).floor() == pytest.approx(least)


def test_streams_of_different_sizes_of_dimensions_are_bounded_too():
    owners, rates = [(0, 1), (0, 2, 3)], [1.0, 1.0, 50.0, 50.0]
    search = ShareSearch(owners, rates, 12)
    for d in range(2):
        for a in owners[d:]:
            assert sum(search._weights[d][s] for s in a) <= 1 + 1e-12


def test_only_streams_of_one_rate_and_like_dimensions_are_taken_foralike():
    pairs = list(combinations(range(4), 2))
    assert alike(pairs, [1.0, 2.0, 1.0, 2.0]) == [[], [0, 2], [1, 3]]
    assert alike(pairs, [1.0] * 4) == [[], [0, 1, 2, 3]]
    assert alike([(0, 1), (1, 2)], [1.0] * 4) == [[3], [0, 2], [1]]


@settings(deadline=None)
@given(cubes())
def test_the_copies_of_a_row_are_the_cells_that_agree_with_it(cube_and_rates):
    cube, rates = cube_and_rates
    for stream in rates:
        owned = cube.owned(stream)
        for place in product(*(range(cube.shares[d]) for d in owned)):
            base = sum(c * cube.strides[d] for c, d in zip(place, owned, strict=True))
            copies = [base + offset for offset in cube.offsets(stream)]
            agreeing = [
                shard
                for shard in range(cube.shards)
                if all(cube.coordinates(shard)[d] == c for c, d in zip(place, owned, strict=True))
            ]
            assert sorted(copies) == agreeing
            assert len(copies) == cube.replication(stream)


@settings(deadline=None)
@given(cubes(), st.data())
def test_rows_that_agree_in_every_dimension_meet_in_exactly_one_shard(cube_and_rates, data):
    cube, _ = cube_and_rates
    shard = data.draw(st.integers(0, cube.shards - 1))
    place = cube.coordinates(shard)
    owners = frozenset().union(*(d.owners for d in cube.dimensions))
    meeting = set(range(cube.shards))
    for stream in owners:
        base = sum(place[d] * cube.strides[d] for d in cube.owned(stream))
        meeting &= {base + offset for offset in cube.offsets(stream)}
    assert meeting == {shard}


@settings(deadline=None)
@given(cubes())
def test_expected_replication_is_rows_sent_over_rows_in(cube_and_rates):
    cube, rates = cube_and_rates
    total = sum(rates.values())
    expected = sent(cube.dimensions, cube.shares, rates) / total if total else 1.0
    assert cube.expected_replication(rates) == pytest.approx(expected)


def test_a_common_key_is_never_replicated_whatever_the_shards():
    dimensions = join_dimensions("abc", {"key": "abc"})
    for shards in (2, 7, 12, 1024):
        cube = choose_shares(dimensions, dict.fromkeys("abc", 1.0), shards)
        assert cube.shares == (shards, 1, 1, 1)
        assert cube.expected_replication(dict.fromkeys("abc", 1.0)) == 1.0


def test_the_fast_stream_is_the_one_that_is_not_copied():
    chain = join_dimensions("rst", {"x": "rs", "y": "st"})
    assert choose_shares(chain, {"r": 100.0, "s": 1.0, "t": 1.0}, 8).shares[:2] == (8, 1)


def clique(streams):
    names = [f"s{i}" for i in range(streams)]
    classes = {f"{a}-{b}": (a, b) for a, b in combinations(names, 2)}
    return join_dimensions(names, classes), dict.fromkeys(names, 1.0)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.sampled_from([1.0, 1.0, 2.0, 9.0]), min_size=6, max_size=6))
def test_streams_that_look_alike_are_told_apart_where_it_matters(rates_of):
    dimensions, rates = clique(6)
    pairs = dimensions[:15]
    rates = dict(zip(rates, rates_of, strict=True))
    cube = choose_shares(dimensions, rates, 24)
    least = min(sent(pairs, shares, rates) for shares in all_shares(15, 24))
    assert sent(dimensions, cube.shares, rates) == pytest.approx(least)


@pytest.mark.parametrize(("shards", "least"), [(1024, 256.0), (840, 239.6)])
def test_a_clique_of_ten_streams_is_solved_in_seconds(shards, least):
    dimensions, rates = clique(10)
    assert len(dimensions) == 55
    began = time.process_time()
    cube = choose_shares(dimensions, rates, shards)
    assert time.process_time() - began < 10
    assert cube.expected_replication(rates) == pytest.approx(least)


def test_the_search_gives_up_being_exact_only_past_its_limit(monkeypatch):
    dimensions, rates = clique(5)
    best = choose_shares(dimensions, rates, 720).expected_replication(rates)
    monkeypatch.setattr("querymesh.optimize.shards.share_search._MOST_STATES", 1)
    cut_short = choose_shares(dimensions, rates, 720)
    assert cut_short.shards == 720
    assert best <= cut_short.expected_replication(rates) < 1.1 * best


@settings(max_examples=60, deadline=None)
@given(problems(4), st.integers(1, 13))
def test_no_smaller_number_of_shards_has_less_in_each(problem, most):
    dimensions, rates = problem
    cube = best_shards_at_most(dimensions, rates, most)
    if not any(rates.values()):
        return
    loads = {
        n: choose_shares(dimensions, rates, n).expected_load(rates) for n in range(1, most + 1)
    }
    assert cube.shards <= most
    assert loads[cube.shards] == pytest.approx(min(loads.values()))


def test_a_dimension_whose_owners_another_has_too_is_never_cut_even_where_that_is_free():
    owned_by_one, owned_by_both = Dimension("x", frozenset("a")), Dimension("y", frozenset("ab"))
    cube = choose_shares([owned_by_one, owned_by_both], {"a": 1.0, "b": 0.0}, 4)
    assert cube.shares == (1, 4)


def test_a_prime_number_of_shards_is_taken_as_it_is_and_a_better_one_is_offered():
    dimensions, rates = [rows_of("a"), rows_of("b")], {"a": 1.0, "b": 1.0}
    assert choose_shares(dimensions, rates, 7).expected_load(rates) == pytest.approx(4 / 7)
    better = best_shards_at_most(dimensions, rates, 7)
    assert (better.shares, better.expected_load(rates)) == ((3, 2), pytest.approx(5 / 12))


def test_the_lowest_bound_does_not_end_the_search_for_the_best_number_of_shards():
    """The bound of 22 is below that of 18, but 22 = 11 * 2 cuts three dimensions badly."""
    dimensions, rates = [rows_of(s) for s in "abc"], dict.fromkeys("abc", 1.0)
    best = best_shards_at_most(dimensions, rates, 22)
    assert (best.shares, best.expected_load(rates)) == ((3, 3, 2), pytest.approx(7 / 18))


def test_what_makes_no_sense_is_refused_with_a_remedy():
    key = Dimension("key", frozenset("ab"))
    with pytest.raises(QueryError, match="shards=1 or more"):
        choose_shares([key], {"a": 1, "b": 1}, 0)
    with pytest.raises(QueryError, match="no rate is given for b"):
        choose_shares([key], {"a": 1}, 2)
    with pytest.raises(QueryError, match="rate of b is -1"):
        choose_shares([key], {"a": 1, "b": -1}, 2)
    with pytest.raises(QueryError, match="no stream has an attribute"):
        choose_shares([Dimension("key", frozenset())], {}, 2)
    with pytest.raises(QueryError, match="nothing to spread"):
        choose_shares([], {}, 2)
    with pytest.raises(QueryError, match="two dimensions are called 'key'"):
        choose_shares([key, key], {"a": 1, "b": 1}, 2)
    with pytest.raises(QueryError, match="make 2 shards and not 4"):
        Hypercube((key,), (2,), 4)
    with pytest.raises(QueryError, match="do not fit"):
        Hypercube((key,), (2, 2), 4)


def test_a_cube_reads_as_its_dimensions_its_copies_and_their_sum():
    rates = {"trades": 8.0, "news": 1.0, "alerts": 1.0}
    dimensions = join_dimensions(
        list(rates), {"symbol": ["trades", "news"], "desk": ["trades", "alerts"]}
    )
    assert shares_text(choose_shares(dimensions, rates, 8), rates) == (
        "8 shards = 4 × 2\n"
        "  symbol  4 parts  places news, trades\n"
        "  desk    2 parts  places alerts, trades\n"
        "copies of a row\n"
        "  trades  1\n"
        "  news    2\n"
        "  alerts  4\n"
        "1.40 rows sent for each row in; each shard gets 17.5 % of all rows"
    )
    assert shares_text(choose_shares(dimensions, rates, 1), rates) == (
        "1 shard: every row is sent once"
    )


def test_the_tables_of_the_documentation_are_the_computed_ones():
    assert shard_tables() in DOCS.read_text(encoding="utf-8"), (
        "copy what `python -m querymesh.report.text.shares_text` prints into docs/guide/shards.md"
    )


def test_every_query_shape_has_a_private_dimension_for_each_stream():
    for dimensions in query_shapes().values():
        streams = frozenset().union(*(d.owners for d in dimensions))
        assert {rows_of(stream) for stream in streams} <= set(dimensions)


@given(problems(), st.sampled_from([1, 2, 4, 6, 12]))
@settings(max_examples=60)
def test_every_tuple_has_one_home_among_the_shards_it_is_copied_to(problem, shards):
    dimensions, rates = problem
    cube = choose_shares(dimensions, rates, shards)
    for stream in rates:
        owned = cube.owned(stream)
        for cells in product(*(range(cube.shares[d]) for d in owned)):
            base = sum(c * cube.strides[d] for d, c in zip(owned, cells, strict=True))
            copies = [base + offset for offset in cube.offsets(stream)]
            assert sum(cube.is_home(stream, shard) for shard in copies) == 1


def test_of_numbers_of_shards_with_the_same_in_each_the_smallest_is_taken():
    """4 × 2 shards have 2/4 + 1/2 rows of a and b each, 3 × 3 have 2/3 + 1/3."""
    dimensions, rates = [rows_of("a"), rows_of("b")], {"a": 2.0, "b": 1.0}
    assert choose_shares(dimensions, rates, 9).expected_load(rates) == pytest.approx(1 / 3)
    best = best_shards_at_most(dimensions, rates, 9)
    assert (best.shares, best.expected_load(rates)) == ((4, 2), pytest.approx(1 / 3))
    assert best_shards_at_most(dimensions, rates, 1).shards == 1
    assert best_shards_at_most(dimensions, rates, 8).shards == 8


def test_streams_of_which_nothing_is_known_count_the_same():
    dimensions = [rows_of("a"), rows_of("b")]
    assert choose_shares(dimensions, {"a": 0.0, "b": 0.0}, 36).shares == (6, 6)
