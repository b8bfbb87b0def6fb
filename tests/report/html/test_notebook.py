"""What notebooks show, and the one line of every `repr`."""

import pytest
from test_html import HOSTILE, Balance

import filter_runs
import meshes
import querymesh as qm
from querymesh.mesh.join_mesh import JoinMesh
from querymesh.mesh.mesh import PlannedOrder
from querymesh.optimize.placement.advice import Advice, Verdict


@qm.predicate(columns=["payload"], vectorised=False, after=["other"])
def is_attack(payload):
    return True


THINGS = {
    "mesh": (
        meshes.three_kinds(),
        "<Mesh of 2 routes over 3 operators, learned from 2,000 sampled rows>",
    ),
    "untrained": (meshes.untrained(), "<Mesh of 1 route over 3 operators, not trained yet>"),
    "join": (
        JoinMesh(meshes.asked(), {"s": meshes.three_kinds(), "n": meshes.untrained()}),
        "<JoinMesh of 2 streams (s: 2 routes over 3 operators, learned from 2,000 sampled rows; "
        "n: 1 route over 3 operators, not trained yet)>",
    ),
    "run": (
        filter_runs.plain(),
        "<Run: policy mesh, engine native, 1 route over 2 operators, not trained yet>",
    ),
    "query": (
        qm.query("SELECT *\n  FROM t\n WHERE a = 1 AND b < 2"),
        "<Query of 2 conditions: SELECT * FROM t WHERE a = 1 AND b < 2>",
    ),
    "predicate": (is_attack, "<Predicate is_attack(payload), row by row, after other>"),
    "function": (qm.function(lambda a: a, name="score"), "<Predicate score() gives double>"),
    "advice": (Advice(Verdict.NO, "there is no condition"), "<Advice: no, engine plain>"),
}  # fmt: skip


@pytest.mark.parametrize("name", THINGS)
def test_what_people_hold_says_in_one_line_what_it_is(name):
    thing, line = THINGS[name]
    assert repr(thing) == line


def test_kinds_of_meshes_keep_their_names():
    mesh = meshes.one_route()
    planned = PlannedOrder(**{n: getattr(mesh, n) for n in mesh.__dataclass_fields__})
    assert repr(planned).startswith("<PlannedOrder of 1 route")


@pytest.mark.parametrize(
    "thing",
    [*(thing for thing, _ in THINGS.values()), filter_runs.sandwich(), filter_runs.advice()],
    ids=lambda thing: type(thing).__name__,
)
def test_what_a_notebook_shows_is_whole_small_and_touches_nothing_else(thing):
    shown = thing._repr_html_()
    balance = Balance()
    balance.feed(shown)
    assert balance.open == []
    assert balance.links == []
    assert shown.startswith('<div class="querymesh"><style>.querymesh {')
    assert shown.count("<style>") == 1
    assert "body" not in shown.partition("</style>")[0]
    assert len(shown) < 20_000


def test_what_people_wrote_is_no_html():
    shown = qm.query(f"SELECT * FROM t WHERE a = '{HOSTILE.replace(chr(39), '')}'")._repr_html_()
    assert "<script" not in shown


def test_a_long_query_is_cut():
    long = qm.query("SELECT * FROM t WHERE " + " AND ".join(f"a{i} = {i}" for i in range(50)))
    assert len(repr(long)) < 140
    assert repr(long).endswith("…>")
