"""Does a mesh fit the query and the data it is to run on?"""

from __future__ import annotations

import math
from dataclasses import replace

import pyarrow as pa

from querymesh.classify.tree import (
    Leaf,
    answerable,
    as_text,
    attributes_of,
    classifiers_of,
    tests_of,
)
from querymesh.errors import MeshFileError, did_you_mean
from querymesh.mesh.mesh import LeafStats, Mesh
from querymesh.mesh.stages import Stages
from querymesh.query.model import BoundQuery


def check_fits(mesh: Mesh, bound: BoundQuery) -> Mesh:
    """A mesh is of one query: its operators must be those the query has on this data."""
    names = [operator.name for operator in bound.operators]
    trained = [operator.name for operator in mesh.operators]
    if names != trained:
        raise MeshFileError(
            f"the mesh was trained for the operators {trained}, but on these inputs the query has "
            f"{names}: train it again"
        )
    for operator, before in zip(mesh.operators, bound.precedence, strict=True):
        if operator.after != before:
            raise MeshFileError(
                f"the mesh was trained with {operator.name} after the operators "
                f"{sorted(operator.after)}, but it must come after {sorted(before)}: train it again"
            )
    schema = bound.schemas[bound.source.alias]
    for name in sorted(attributes_of(mesh.tree)):
        if name not in schema.names:
            raise MeshFileError(
                f"the mesh tells tuples apart by {name!r}, which {bound.source.name} "
                f"does not have: {did_you_mean(name, schema.names)}"
            )
    for test in tests_of(mesh.tree):
        if not answerable(test, schema.field(test.attribute).type):
            raise MeshFileError(
                f"the mesh asks whether {as_text(test)}, which has no answer for a column of type "
                f"{schema.field(test.attribute).type}: train it again"
            )
    for classifier in classifiers_of(mesh.tree):
        try:
            classifier.classes(lambda name: pa.nulls(1, schema.field(name).type), 1)
        except (pa.ArrowException, TypeError, ValueError) as problem:
            raise MeshFileError(
                f"the mesh asks classifier {classifier.kind}, which has no answer for the columns "
                f"{', '.join(classifier.columns)} of {bound.source.name} ({problem}): train it "
                "again"
            ) from problem
    return mesh


def as_single(mesh: Mesh) -> Mesh:
    """The mesh's best single route as a mesh of its own.

    Where it has stages, the route keeps to them. If its leaves differ in what runs where, it is the
    route of the leaf that most tuples reach, in that leaf's stages.
    """
    single, stages, single_us = mesh.single, mesh.stages, mesh.single_us
    if stages is not None:
        leaf = max(range(len(mesh.leaves)), key=lambda k: mesh.leaves[k].share)
        kept = stages.parts_of(leaf, mesh.leaf_routes[leaf])
        cut = stages.parts_of(leaf, single)
        if not stages.is_alike(mesh) or cut.as_sets != kept.as_sets:
            single, single_us = mesh.leaf_routes[leaf], math.nan
        stages = Stages((stages.splits[leaf],))
    return replace(
        mesh,
        tree=Leaf(0),
        routes=(single,),
        leaves=(LeafStats(1.0, single_us, single_us),),
        single=single,
        expected_us=single_us,
        single_us=single_us,
        uncertain=(),
        stages=stages,
        why="policy single was asked for",
    )
