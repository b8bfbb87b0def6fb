"""Meshes and a run built by hand, with round figures, for the golden files beside this module."""

from __future__ import annotations

from dataclasses import replace

from querymesh.classify.attributes import LeftOut
from querymesh.classify.tree import Leaf, Member, Split, Threshold
from querymesh.fabric.core.metrics import Metrics, Visits
from querymesh.mesh.mesh import LeafStats, Mesh, OperatorStats, TrainedOn, written_order
from querymesh.query.model import Query, Relation

SQL = "SELECT * FROM Stock s, News n WHERE bullish(s.data) AND s.sector = n.sector AND s.price < 90"


def asked() -> Query:
    return Query(SQL, (Relation("Stock", "s"), Relation("News", "n")), (), None)


def three_kinds() -> Mesh:
    farms = Member("sector", ("Agriculture", "Energy"))
    return Mesh(
        query=asked(),
        operators=(
            OperatorStats("bullish(s.data)", frozenset(), 42.1, 0.35),
            OperatorStats("s.sector = n.sector", frozenset(), 0.8, 1.25),
            OperatorStats("n.score < 90", frozenset({2}), 0.0123, 0.5),
        ),
        tree=Split(farms, Leaf(0), Split(Threshold("price", 10.5, True), Leaf(1), Leaf(0))),
        routes=((1, 2, 3), (2, 3, 1)),
        leaves=(
            LeafStats(0.4, 42.2, 90.0),
            LeafStats(0.35, 8.25, 8.25),
            LeafStats(0.25, 50.0, 61.0),
        ),
        single=(2, 3, 1),
        expected_us=32.27,
        single_us=54.14,
        bound_us=20.5,
        trained_on=TrainedOn(2000),
        left_out=(
            LeftOut("data", "long free text"),
            LeftOut("tick", "only grows: no future tuple will have a past value"),
        ),
        why="3 kinds of tuples are worth telling apart",
    )


def one_route() -> Mesh:
    mesh = three_kinds()
    return replace(
        mesh,
        tree=Leaf(0),
        routes=((2, 3, 1),),
        leaves=(LeafStats(1.0, 54.14, 54.14),),
        expected_us=54.14,
        trained_on=TrainedOn(1),
        left_out=(),
        why="no split of the data costs less than the best single route",
    )


def untrained() -> Mesh:
    names = ("bullish(s.data)", "s.sector = n.sector", "n.score < 90")
    return written_order(asked(), names, (frozenset(), frozenset(), frozenset({2})))


def no_operators() -> Mesh:
    return Mesh(
        query=Query("SELECT * FROM Stock", (Relation("Stock", "Stock"),), (), None),
        operators=(),
        tree=Leaf(0),
        routes=((),),
        leaves=(LeafStats(1.0, 0.0, 0.0),),
        single=(),
        expected_us=0.0,
        single_us=0.0,
        bound_us=0.0,
        trained_on=TrainedOn(120),
        left_out=(),
        why="fewer than two operators have one order",
    )


def a_run() -> Metrics:
    metrics = Metrics(
        rows_in=20_000, rows_out=1_500, windows=4, rusters=10, classify_seconds=0.004,
        output_seconds=0.01, total_seconds=0.5, profile_seconds=0.04, profiled_rows=500,
        profile_evaluations=1500,
    )  # fmt: skip
    metrics.leaf_rows.update({(0, 0): 5_000, (1, 0): 6_000, (1, 1): 5_250, (1, 2): 3_750})
    metrics.visits.update(
        {
            (0, 0, 1): Visits(1, 5_000, 1_750, 0, 0.2),
            (1, 0, 1): Visits(3, 6_000, 600, 3, 0.24),
            (1, 0, 2): Visits(3, 600, 750, 0, 0.0006),
            (1, 1, 2): Visits(3, 5_250, 0, 0, 0.005),
        }
    )
    return metrics
