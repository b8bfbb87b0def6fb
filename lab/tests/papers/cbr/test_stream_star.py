import numpy as np
import pytest

from querymesh.errors import QueryMeshError
from querymesh.fabric.core.fabric import Fabric
from querymesh.fabric.core.tables import make_tables
from querymesh.fabric.routers.content_oracle import OracleRouter
from querymesh_lab.papers.cbr.stream_star import (
    ATTRIBUTES,
    CLASSIFIER,
    TABLE_1,
    UNCORRELATED,
    StreamStar,
    best_orders,
    random_selectivities,
    skewed,
)

ROWS = 60_000


def passes(star, rows, seed=0):
    """For each tuple and operator whether it has a partner, and its class."""
    batch, kind = star.source(rows, seed)
    keys = np.stack([np.asarray(batch.column(f"fkd{n + 1}")) for n in range(star.joins)], axis=1)
    return keys < star.dimension_rows, kind


def within(seen, expected, rows, sigmas=4.5):
    return abs(seen - expected) <= sigmas * np.sqrt(expected * (1 - expected) / rows) + 1e-9


@pytest.mark.parametrize(
    "matrix", [TABLE_1, skewed(4, 0.05), random_selectivities(3, np.random.default_rng(0))]
)
def test_selectivities_by_class_are_those_asked_for(matrix):
    star = StreamStar(matrix)
    passed, kind = passes(star, ROWS)
    for number, row in enumerate(matrix):
        of_class = passed[kind == number]
        assert within(len(of_class) / ROWS, 1 / len(matrix), ROWS)
        for seen, expected in zip(of_class.mean(axis=0), row, strict=True):
            assert within(seen, expected, len(of_class))


def test_operators_are_independent_given_the_class():
    passed, kind = passes(StreamStar(TABLE_1), ROWS)
    for number, row in enumerate(TABLE_1):
        of_class = passed[kind == number]
        assert within(of_class.all(axis=1).mean(), np.prod(row), len(of_class))


def test_table_1_has_its_overall_selectivities():
    passed, _ = passes(StreamStar(TABLE_1), ROWS)
    for seen, printed in zip(passed.mean(axis=0), (0.30, 0.40, 0.60), strict=True):
        assert within(seen, printed, ROWS)


def test_other_attributes_and_foreign_keys_tell_nothing_of_the_class():
    batch, kind = StreamStar(skewed(4, 0.05)).source(ROWS)
    assert batch.schema.names == [CLASSIFIER, *(f"fkd{n}" for n in range(1, 5)), *UNCORRELATED]
    for name in UNCORRELATED:
        values = np.asarray(batch.column(name)).astype(float)
        if values.std():
            assert abs(np.corrcoef(values, kind)[0, 1]) < 4.5 / np.sqrt(ROWS)
    for name in ("const1", "const2"):
        assert len(np.unique(np.asarray(batch.column(name)))) == 1
    for name in ("seq1", "seq2"):
        assert (np.diff(np.asarray(batch.column(name))) > 0).all()
    assert set(ATTRIBUTES) <= set(batch.schema.names)


@pytest.mark.parametrize("hashed", [False, True])
def test_the_query_looks_up_what_the_stream_says(hashed):
    star = StreamStar(TABLE_1, hashed=hashed, dimension_rows=500)
    batch, _ = star.source(3000, seed=1)
    dimensions = star.dimensions()
    assert {d.num_rows for d in dimensions.values()} == {500}
    bound = star.query().bind({"S": batch.schema, **{n: d.schema for n, d in dimensions.items()}})
    tables = make_tables(bound, dimensions)
    expected, _ = passes(star, 3000, seed=1)
    fabric = Fabric(bound, tables)
    routes = best_orders(TABLE_1)
    out = list(fabric.run(batch, OracleRouter(CLASSIFIER, routes, routes[0])))
    found = np.sort(np.concatenate([np.asarray(each.column("seq1")) for each in out]))
    assert found.tolist() == np.flatnonzero(expected.all(axis=1)).tolist()


def test_the_same_seed_gives_the_same_stream():
    star = StreamStar(TABLE_1)
    assert star.source(100, 3)[0].equals(star.source(100, 3)[0])
    assert not star.source(100, 3)[0].equals(star.source(100, 4)[0])


@pytest.mark.parametrize("joins", [2, 4, 6, 8])
@pytest.mark.parametrize("a", [0.05, 0.5, 0.95])
def test_skewed_matrices_keep_the_aggregate_selectivity(joins, a):
    matrix = skewed(joins, a)
    for number, row in enumerate(matrix):
        assert row[number] == a
        assert np.prod(row) == pytest.approx(0.05)


def test_random_selectivities_keep_the_aggregate_selectivity_where_asked():
    matrix = random_selectivities(6, np.random.default_rng(1), 0.15)
    for row in matrix:
        assert np.prod(row) == pytest.approx(0.15)
        assert len(set(row)) == 6


def test_best_orders_begin_with_the_most_selective():
    assert best_orders(TABLE_1) == {0: (2, 1, 3), 1: (2, 1, 3), 2: (1, 3, 2)}


@pytest.mark.parametrize("matrix", [((0.5,), (0.5, 0.5)), ((1.2,),), ((),)])
def test_a_matrix_that_makes_no_sense_is_refused(matrix):
    with pytest.raises(QueryMeshError):
        StreamStar(matrix)
