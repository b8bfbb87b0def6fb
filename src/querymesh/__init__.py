"""QueryMesh: different plans for different data, on Apache Spark.

import querymesh as qm

out = df.transform(qm.where(looks_like_injection, "port IN (22, 445)", "country <> 'US'"))
"""

from querymesh import indices, policies
from querymesh.errors import (
    MeshFileError,
    OptionError,
    PredicateError,
    QueryError,
    QueryMeshError,
    SchemaError,
    SetupError,
    StateError,
    TrainingError,
    UnsupportedError,
)
from querymesh.mesh.join_mesh import JoinMesh, load
from querymesh.mesh.mesh import Mesh
from querymesh.query.model import Query
from querymesh.query.parse.query import query
from querymesh.query.predicate.predicate import Predicate, function, predicate
from querymesh.runtime.run import Run
from querymesh.spark.fair import fair, in_rounds
from querymesh.spark.remembered import inspect
from querymesh.spark.results import Results
from querymesh.spark.run import run, run_all
from querymesh.spark.session import local_session
from querymesh.spark.train import train
from querymesh.spark.where import where

__version__ = "0.1.0"

__all__ = [
    "JoinMesh",
    "Mesh",
    "MeshFileError",
    "OptionError",
    "Predicate",
    "PredicateError",
    "Query",
    "QueryError",
    "QueryMeshError",
    "Results",
    "Run",
    "SchemaError",
    "SetupError",
    "StateError",
    "TrainingError",
    "UnsupportedError",
    "__version__",
    "fair",
    "function",
    "in_rounds",
    "indices",
    "inspect",
    "load",
    "local_session",
    "policies",
    "predicate",
    "query",
    "run",
    "run_all",
    "train",
    "where",
]
