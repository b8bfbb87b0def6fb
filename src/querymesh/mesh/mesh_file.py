"""Saved meshes: JSON with a schema of our own, validated on load. Never pickle, never eval.

A saved mesh holds the query as SQL text, so it can be read, compared and reviewed; user functions
are stored by name only and given again to `load`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from querymesh.classify.attributes import LeftOut
from querymesh.classify.classifier import ClassifierKind
from querymesh.classify.tree import leaves
from querymesh.cost.route_time import WINDOW
from querymesh.errors import MeshFileError, QueryMeshError
from querymesh.mesh.json_reader import Reader, or_null, read_object
from querymesh.mesh.mesh import LeafStats, Mesh, OperatorStats, PlannedOrder, TrainedOn
from querymesh.mesh.route import route_fault, uncertain_text
from querymesh.mesh.stages import Stages, stages_fault
from querymesh.mesh.tree_file import tree_from_json, tree_to_json
from querymesh.query.model import Query
from querymesh.query.parse.query import query
from querymesh.query.predicate.predicate import Predicate
from querymesh.storage import Storage

FORMAT = "querymesh.mesh"
VERSION = 4
_NOT_IN_VERSION_1: dict[str, Any] = {
    "uncertain": [], "found_by": "", "accuracy": None, "window": WINDOW, "least_ruster": 0,
}  # fmt: skip
_NOT_IN_VERSION_3: dict[str, Any] = {"classify_every": 1}
TRAINED, WRITTEN, PLANNED = "trained", "written", "planned"


def save_mesh(mesh: Mesh, path: str | os.PathLike[str]) -> None:
    """Write a mesh; a file that was there is replaced in one step."""
    save_text(mesh_to_json(mesh), path)


def save_text(text: str, path: str | os.PathLike[str]) -> None:
    """Write the JSON of a mesh."""
    folder, name = os.path.split(os.fspath(path))
    try:
        Storage(folder or ".", "a mesh").write(name, f"{text}\n".encode())
    except OSError as problem:
        raise MeshFileError(f"cannot write the mesh file {path}: {problem.strerror}") from problem


def load_mesh(
    path: str | os.PathLike[str],
    functions: Mapping[str, Predicate | Callable[..., object]] | None = None,
    learners: Sequence[ClassifierKind] = (),
) -> Mesh:
    """Read a mesh back. `functions` are the user functions its query calls, by name."""
    text = load_text(path)
    try:
        return mesh_from_json(text, functions, learners=learners)
    except QueryMeshError as problem:
        raise MeshFileError(f"{path}: {problem}") from problem


def load_text(path: str | os.PathLike[str]) -> str:
    """Read the JSON of a mesh."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise MeshFileError(f"cannot read the mesh file {path}: {problem}") from problem


def mesh_to_json(mesh: Mesh) -> str:
    """The mesh as JSON text."""
    asked = mesh.query.asked or mesh.query
    content = {
        "format": FORMAT,
        "version": VERSION,
        "kind": _kind(mesh),
        "sql": asked.sql,
        "time": asked.time,
        "functions": sorted(asked.functions),
        "operators": [
            {
                "name": op.name,
                "after": sorted(op.after),
                "cost_us": or_null(op.cost_us),
                "pass_rate": or_null(op.pass_rate),
                "drop_us": or_null(op.drop_us),
                "pass_us": or_null(op.pass_us),
            }
            for op in mesh.operators
        ],
        "routes": [list(route) for route in mesh.routes],
        "tree": tree_to_json(mesh.tree),
        "leaves": [
            {
                "share": or_null(leaf.share),
                "route_us": or_null(leaf.route_us),
                "single_us": or_null(leaf.single_us),
            }
            for leaf in mesh.leaves
        ],
        "single": list(mesh.single),
        "expected_us": or_null(mesh.expected_us),
        "single_us": or_null(mesh.single_us),
        "bound_us": or_null(mesh.bound_us),
        "sample_rows": mesh.sample_rows,
        "left_out": {entry.name: entry.reason for entry in mesh.left_out},
        "why": mesh.why,
        "found_by": mesh.found_by,
        "accuracy": mesh.accuracy,
        "uncertain": [[list(choice) for choice in steps] for steps in mesh.uncertain],
        "window": mesh.window,
        "least_ruster": mesh.least_ruster,
        "classify_every": mesh.classify_every,
    }
    if mesh.stages is not None:
        content["stages"] = [list(split) for split in mesh.stages.splits]
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)


def mesh_from_json(
    text: str,
    functions: Mapping[str, Predicate | Callable[..., object]] | None = None,
    asked: Query | None = None,
    learners: Sequence[ClassifierKind] = (),
) -> Mesh:
    """A mesh from JSON text; anything out of place is a MeshFileError that names it.

    Its query is `asked`, if that is given, and else what its SQL text says. `learners` read
    classifiers of other kinds than ours.
    """
    try:
        content = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as problem:
        raise MeshFileError(f"not JSON: {problem}") from problem
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise MeshFileError("not a saved mesh: its 'format' is not 'querymesh.mesh'")
    version = content.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        newer = type(version) is int and version > VERSION
        raise MeshFileError(
            f"mesh file version {version!r}, but this QueryMesh reads version {VERSION}: "
            + ("upgrade QueryMesh" if newer else "save the mesh again")
        )
    if version == 1:
        content = {**_NOT_IN_VERSION_1, **content}
    if version < 3:
        content = {"kind": TRAINED if content.get("sample_rows") else WRITTEN, **content}
    if version < VERSION:
        content = {**_NOT_IN_VERSION_3, **content}
    read = Reader(content)
    routes = tuple(_route(route) for route in read.list_("routes"))
    operators = tuple(_operator(entry) for entry in read.list_("operators"))
    kind, rows = read.get("kind", str), read.get("sample_rows", int)
    if kind not in (TRAINED, WRITTEN, PLANNED) or rows < 0:
        raise MeshFileError(f"a mesh of kind {kind!r} seen {rows} rows is none: save it again")
    make = partial(PlannedOrder, profiled_rows=rows) if kind == PLANNED else Mesh
    mesh = make(
        query=_query(read, functions) if asked is None else _same(asked, read),
        operators=operators,
        tree=tree_from_json(read.get("tree", dict), learners),
        routes=routes,
        leaves=tuple(_leaf(entry) for entry in read.list_("leaves")),
        single=_route(read.get("single", list)),
        expected_us=read.float_("expected_us"),
        single_us=read.float_("single_us"),
        bound_us=read.float_("bound_us"),
        trained_on=_trained_on(read) if kind == TRAINED else None,
        left_out=tuple(LeftOut(str(k), str(v)) for k, v in read.get("left_out", dict).items()),
        why=read.get("why", str),
        uncertain=tuple(_steps(entry) for entry in read.list_("uncertain")),
        window=read.get("window", int),
        least_ruster=read.get("least_ruster", int),
        classify_every=read.get("classify_every", int),
        stages=_stages(read.list_("stages")) if "stages" in content else None,
    )
    _check(mesh)
    return mesh


def _kind(mesh: Mesh) -> str:
    if isinstance(mesh, PlannedOrder):
        return PLANNED
    return WRITTEN if mesh.trained_on is None else TRAINED


def _trained_on(read: Reader) -> TrainedOn:
    accuracy = read.float_("accuracy")
    return TrainedOn(
        rows=read.get("sample_rows", int),
        found_by=read.get("found_by", str),
        accuracy=None if math.isnan(accuracy) else accuracy,
    )


def _check(mesh: Mesh) -> None:
    """What the parts must say of each other."""
    after = [operator.after for operator in mesh.operators]
    for number, before in enumerate(after, start=1):
        if number in before:
            raise MeshFileError(f"operator {number} must come after itself")
    for route in (*mesh.routes, mesh.single):
        fault = route_fault(route, after)
        if fault:
            raise MeshFileError(f"route {list(route)} {fault}")
    if any(not 0 <= leaf.share <= 1 for leaf in mesh.leaves):
        raise MeshFileError("a leaf's share is not between 0 and 1")
    labels = [leaf.label for leaf, _ in leaves(mesh.tree)]
    if any(not 0 <= label < len(mesh.routes) for label in labels):
        raise MeshFileError(f"a leaf points to a route that is not among the {len(mesh.routes)}")
    _check_uncertain(mesh)
    if mesh.window < 1 or mesh.least_ruster < 0 or mesh.classify_every < 1:
        raise MeshFileError(
            "'window' and 'classify_every' must be at least 1 and 'least_ruster' at least 0"
        )
    if len(labels) != len(mesh.leaves):
        raise MeshFileError(
            f"the tree has {len(labels)} leaves, but {len(mesh.leaves)} are described"
        )
    fault = stages_fault(mesh.stages, mesh.leaf_routes) if mesh.stages is not None else ""
    if fault:
        raise MeshFileError(fault)


def _check_uncertain(mesh: Mesh) -> None:
    """Every leaf's route must be among the orders its choices leave open."""
    if not mesh.uncertain:
        return
    if len(mesh.uncertain) != len(mesh.leaves):
        raise MeshFileError(
            f"{len(mesh.leaves)} leaves are described, but {len(mesh.uncertain)} uncertain routes"
        )
    for steps, route in zip(mesh.uncertain, mesh.leaf_routes, strict=True):
        first = 0
        for choice in steps:
            if not choice or set(choice) != set(route[first : first + len(choice)]):
                raise MeshFileError(
                    f"the uncertain route <{uncertain_text(steps)}> does not hold its leaf's route "
                    f"{list(route)}"
                )
            first += len(choice)
        if first != len(route):
            raise MeshFileError(
                f"the uncertain route <{uncertain_text(steps)}> is not an order of all operators"
            )


def _query(read: Reader, functions: Mapping[str, Any] | None) -> Any:
    given = {name.lower(): function for name, function in (functions or {}).items()}
    missing = [name for name in read.list_("functions") if str(name).lower() not in given]
    if missing:
        raise MeshFileError(
            f"the mesh calls {', '.join(map(str, missing))}: give functions={{{missing[0]!r}: ...}}"
        )
    return query(read.get("sql", str), time=read.get("time", str | None), functions=given)  # type: ignore[arg-type]


def _same(asked: Query, read: Reader) -> Query:
    if read.get("sql", str) != asked.sql:
        raise MeshFileError(f"the mesh is of another query: {read.get('sql', str)}")
    return asked


def _operator(entry: Any) -> OperatorStats:
    read = read_object(entry, "an operator")
    after = frozenset(_index(k) for k in read.list_("after"))
    by_outcome = {key: read.float_(key) for key in ("drop_us", "pass_us") if key in entry}
    return OperatorStats(
        name=read.get("name", str),
        after=after,
        cost_us=read.float_("cost_us"),
        pass_rate=read.float_("pass_rate"),
        **by_outcome,
    )


def _leaf(entry: Any) -> LeafStats:
    read = read_object(entry, "a leaf")
    return LeafStats(
        share=read.float_("share"),
        route_us=read.float_("route_us"),
        single_us=read.float_("single_us"),
    )


def _index(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise MeshFileError(f"{value!r} is not an operator index")
    return value


def _route(entry: Any) -> tuple[int, ...]:
    if not isinstance(entry, list):
        raise MeshFileError(f"a route is {entry!r}, not a list of operator indices")
    return tuple(_index(value) for value in entry)


def _steps(entry: Any) -> tuple[tuple[int, ...], ...]:
    if not isinstance(entry, list):
        raise MeshFileError(f"an uncertain route is {entry!r}, not a list of choices")
    return tuple(_route(choice) for choice in entry)


def _stages(entries: list[Any]) -> Stages:
    for entry in entries:
        if not isinstance(entry, list) or len(entry) != 2 or any(type(n) is not int for n in entry):
            raise MeshFileError(
                f"the stages of a leaf are {entry!r}, not how many operators run before the Python "
                "stage and how many in it"
            )
    return Stages(tuple((before, python) for before, python in entries))


def _no_number(text: str) -> float:
    raise MeshFileError(f"{text} is not a finite number")
