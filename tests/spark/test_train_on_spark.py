import logging

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import querymesh as qm
from equivalence import as_multiset

KINDS = ("a", "b", "c")


def drops(kind):
    """Drops nine tenths of one kind and a tenth of the others."""

    def passes(k, x):
        return pc.if_else(pc.equal(k, kind), pc.less(x, 0.1), pc.less(x, 0.9))

    return qm.predicate(passes, columns=["k", f"x_{kind}"], name=f"drops_{kind}", cost_us=10.0)


FUNCTIONS = {f"drops_{kind}": drops(kind) for kind in KINDS}
QUERY = qm.query("SELECT * FROM T WHERE drops_a() AND drops_b() AND drops_c()", functions=FUNCTIONS)


@pytest.fixture(scope="module")
def source(spark):
    rng = np.random.default_rng(0)
    rows = 9000
    columns = {"k": np.array(KINDS)[rng.integers(0, 3, rows)]}
    columns |= {f"x_{kind}": rng.random(rows) for kind in KINDS}
    return spark.createDataFrame(pa.table(columns))


def test_a_sample_is_drawn_again_twice_as_large_until_it_is_accurate(source):
    training = qm.policies.Training(
        sample_rows=60, accuracy=0.97, judge="cross-validation", folds=3
    )
    mesh = qm.train(QUERY, {"T": source}, policy=qm.policies.Mesh(training=training))
    assert mesh.sample_rows in {60 * 2**k for k in range(1, 7)}
    assert mesh.accuracy >= 0.97
    assert "accuracy: " in mesh.explain()


def test_an_accuracy_that_is_never_reached_is_said_and_the_best_mesh_stands(source, caplog):
    training = qm.policies.Training(sample_rows=100, most_sample_rows=200, accuracy=0.99999)
    with caplog.at_level(logging.WARNING, "querymesh"):
        mesh = qm.train(QUERY, {"T": source}, policy=qm.policies.Mesh(training=training))
    assert "accuracy 0.99999 was asked for and not reached" in caplog.text
    assert "most_sample_rows=200" in mesh.explain()
    out = qm.run(mesh, {"T": source})
    assert out.count() > 0


@pytest.mark.parametrize("preset", ["table-1", "table-3"])
def test_the_paper_s_presets_train_and_run(source, preset):
    mesh = qm.train(QUERY, {"T": source}, policy=qm.policies.Mesh.paper(preset, tolerance=0.05))
    assert (mesh.window, mesh.least_ruster, mesh.sample_rows) == (1000, 100, 1000)
    assert len(mesh.routes) == 3
    out = qm.run(mesh, {"T": source})
    alone = qm.run(QUERY, {"T": source}, policy="single")
    assert as_multiset(out.toArrow()) == as_multiset(alone.toArrow())
    live = qm.inspect(out)
    assert live.counts.windows >= 9, "windows of a thousand rows"
    assert live.counts.evaluations < 0.9 * qm.inspect(alone).counts.evaluations


def test_uncertain_routes_draw_and_give_the_same_result(source):
    mesh = qm.train(QUERY, {"T": source}, policy=qm.policies.Mesh(tolerance=0.2))
    assert any(len(choice) > 1 for steps in mesh.uncertain for choice in steps)
    out = qm.run(mesh, {"T": source})
    certain = qm.run(QUERY, {"T": source})
    assert as_multiset(out.toArrow()) == as_multiset(certain.toArrow())
    drawn, fixed = (qm.inspect(df).counts.evaluations for df in (out, certain))
    assert drawn < 1.2 * fixed


def test_a_strategy_of_the_caller_s_own_is_used(source):
    asked = []

    def as_given(subset):
        asked.append(subset.operators)
        return (3, 2, 1)

    mesh = qm.train(
        QUERY,
        {"T": source},
        policy=qm.policies.Mesh(training=qm.policies.Training(route_search=as_given)),
    )
    assert mesh.routes == ((3, 2, 1),)
    assert set(asked) == {3}
