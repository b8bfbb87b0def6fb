"""QueryMesh: different plans for different data, on Apache Spark.

import querymesh as qm

out = df.transform(qm.where(looks_like_injection, "port IN (22, 445)", "country <> 'US'"))
"""

from querymesh.errors import (
    MeshFileError,
    PredicateError,
    QueryError,
    QueryMeshError,
    SchemaError,
    SetupError,
    StateError,
    TrainingError,
    UnsupportedError,
)
from querymesh.fabric.routers.routing import Routing
from querymesh.index.tune.indexing import Indexing
from querymesh.mesh.join_mesh import JoinMesh, load
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.adapt.adapt import Adaptation
from querymesh.optimize.chart.charting import Charting
from querymesh.optimize.rate.goals import First, Last, MostBy
from querymesh.optimize.search.stop import Stop
from querymesh.optimize.train.training import Training
from querymesh.query.model import Query
from querymesh.query.parse.query import query
from querymesh.query.predicate.predicate import Predicate, function, predicate
from querymesh.runtime.join_run import JoinRun
from querymesh.runtime.run import LiveRun, metrics
from querymesh.spark.fair import fair, in_rounds
from querymesh.spark.joins.tree_run import TreeRun
from querymesh.spark.results import Results
from querymesh.spark.run import run
from querymesh.spark.session import local_session
from querymesh.spark.train import train
from querymesh.spark.where import where

__version__ = "0.1.0"

__all__ = [
    "Adaptation",
    "Charting",
    "First",
    "Indexing",
    "JoinMesh",
    "JoinRun",
    "Last",
    "LiveRun",
    "Mesh",
    "MeshFileError",
    "MostBy",
    "Predicate",
    "PredicateError",
    "Query",
    "QueryError",
    "QueryMeshError",
    "Results",
    "Routing",
    "SchemaError",
    "SetupError",
    "StateError",
    "Stop",
    "Training",
    "TrainingError",
    "TreeRun",
    "UnsupportedError",
    "__version__",
    "fair",
    "function",
    "in_rounds",
    "load",
    "local_session",
    "metrics",
    "predicate",
    "query",
    "run",
    "train",
    "where",
]
