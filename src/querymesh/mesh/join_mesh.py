"""The mesh of a windowed join: one mesh for each stream, for the tuples that arrive there."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from querymesh.classify.classifier import ClassifierKind
from querymesh.errors import MeshFileError, QueryMeshError, UnsupportedError
from querymesh.explained import Explained
from querymesh.mesh.hypercube import Dimension, Hypercube
from querymesh.mesh.mesh import Mesh
from querymesh.mesh.mesh_file import load_text, mesh_from_json, mesh_to_json, save_text
from querymesh.query.model import Query
from querymesh.query.predicate.predicate import Predicate
from querymesh.stats.profile import Route

FORMAT = "querymesh.join-mesh"
VERSION = 1


@dataclass(frozen=True)
class JoinMesh(Explained):
    """Meshes of one query over several streams, by the streams' aliases.

    `rates` are how many tuples of each stream arrived in the sample, by which shards are cut;
    `cube` is how the join is spread over shards, None where that is not decided yet.
    """

    query: Query
    meshes: Mapping[str, Mesh]
    rates: Mapping[str, float] = field(default_factory=dict)
    cube: Hypercube | None = None

    def __repr__(self) -> str:
        streams = "; ".join(f"{alias}: {mesh.headline}" for alias, mesh in self.meshes.items())
        return f"<JoinMesh of {len(self.meshes)} streams ({streams})>"

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams, by alias."""
        return tuple(self.meshes)

    @property
    def routes(self) -> dict[str, tuple[Route, ...]]:
        """The routes of each stream's tuples."""
        return {alias: mesh.routes for alias, mesh in self.meshes.items()}

    @property
    def is_single(self) -> bool:
        """Whether all tuples of each stream take one route."""
        return all(mesh.is_single for mesh in self.meshes.values())

    @property
    def is_learned(self) -> bool:
        """Whether every stream's routes were chosen by what was seen."""
        return all(mesh.is_learned for mesh in self.meshes.values())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the meshes as JSON; `querymesh.load` reads them back."""
        save_text(join_mesh_to_json(self), path)


@dataclass(frozen=True, repr=False)
class SharedJoinMesh(JoinMesh):
    """The meshes of several joins that share one pass over their streams (QM § 5.2): one for each
    group of queries and stream."""

    sources: tuple[str, ...] = ()

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams, each once."""
        return self.sources

    def save(self, path: str | os.PathLike[str]) -> None:
        """Refused: the queries' functions and outputs are in no one SQL text."""
        raise UnsupportedError(
            "a mesh of several queries in one pass is not saved: run_all([...]) learns it anew"
        )


def join_mesh_to_json(mesh: JoinMesh) -> str:
    """The meshes as JSON text."""
    streams = {alias: json.loads(mesh_to_json(each)) for alias, each in mesh.meshes.items()}
    content = {
        "format": FORMAT,
        "version": VERSION,
        "rates": dict(mesh.rates),
        "cube": None if mesh.cube is None else _cube_content(mesh.cube),
        "streams": streams,
    }
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)


def load(
    path: str | os.PathLike[str],
    functions: Mapping[str, Predicate | Callable[..., object]] | None = None,
    classifiers: Sequence[ClassifierKind] = (),
) -> Mesh | JoinMesh:
    """Read a saved mesh back. `functions` are the user functions its query calls, by name, and
    `classifiers` what made its classifier, if that is of a kind of your own."""
    text = load_text(path)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None  # which the reader of meshes says better
    try:
        if isinstance(content, dict) and content.get("format") == FORMAT:
            return _from_content(content, functions, classifiers)
        return mesh_from_json(text, functions, learners=classifiers)
    except QueryMeshError as problem:
        raise MeshFileError(f"{path}: {problem}") from problem


def _from_content(
    content: dict[str, Any],
    functions: Mapping[str, Predicate | Callable[..., object]] | None,
    learners: Sequence[ClassifierKind],
) -> JoinMesh:
    if content.get("version") != VERSION:
        raise MeshFileError(
            f"join mesh file version {content.get('version')!r}, but this QueryMesh reads version "
            f"{VERSION}: upgrade QueryMesh, or save the mesh again"
        )
    streams = content.get("streams")
    if not isinstance(streams, dict) or len(streams) < 2:
        raise MeshFileError("'streams' must hold a mesh for each of two or more streams")
    meshes = {}
    for alias, one in streams.items():
        try:
            meshes[alias] = mesh_from_json(json.dumps(one), functions, learners=learners)
        except QueryMeshError as problem:
            raise MeshFileError(f"stream {alias}: {problem}") from problem
    if len({mesh.query.sql for mesh in meshes.values()}) > 1:
        raise MeshFileError("its streams' meshes are of different queries: save the mesh again")
    rates = content.get("rates")
    if not isinstance(rates, dict) or not all(
        alias in meshes and isinstance(rate, int | float) and rate >= 0
        for alias, rate in rates.items()
    ):
        raise MeshFileError("'rates' must hold a number of tuples for each stream")
    cube = _cube(content.get("cube"), set(meshes))
    return JoinMesh(next(iter(meshes.values())).query, meshes, rates, cube)


def _cube_content(cube: Hypercube) -> list[dict[str, Any]]:
    return [
        {"dimension": dimension.name, "owners": sorted(dimension.owners), "share": share}
        for dimension, share in zip(cube.dimensions, cube.shares, strict=True)
    ]


def _cube(content: Any, streams: set[str]) -> Hypercube | None:
    """The cube as it was saved; None where it was not decided, or not yet saved."""
    if content is None:
        return None
    if not isinstance(content, list) or not all(_is_cut(each, streams) for each in content):
        raise MeshFileError(
            "'cube' must hold a dimension, its owners among the streams and its share, a whole "
            "number, for each class of join attributes: save the mesh again"
        )
    shares = tuple(each["share"] for each in content)
    dimensions = (Dimension(each["dimension"], frozenset(each["owners"])) for each in content)
    return Hypercube(tuple(dimensions), shares, prod(shares))


def _is_cut(content: Any, streams: set[str]) -> bool:
    if not isinstance(content, dict) or not isinstance(content.get("dimension"), str):
        return False
    owners, share = content.get("owners"), content.get("share")
    named = isinstance(owners, list) and all(isinstance(o, str) and o in streams for o in owners)
    return named and type(share) is int
