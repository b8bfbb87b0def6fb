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
from querymesh.fabric.routing import Routing
from querymesh.index.indexing import Indexing
from querymesh.optimize.adapt import Adaptation
from querymesh.optimize.charting import Charting
from querymesh.optimize.join_mesh import JoinMesh, load
from querymesh.optimize.mesh import Mesh
from querymesh.optimize.rate_goals import First, Last, MostBy
from querymesh.optimize.stop import Stop
from querymesh.optimize.training import Training
from querymesh.query.model import Query
from querymesh.query.parse import query
from querymesh.query.predicate import Predicate, function, predicate
from querymesh.spark.fair import fair, in_rounds
from querymesh.spark.join_live import JoinRun
from querymesh.spark.live import LiveRun, metrics
from querymesh.spark.run import run
from querymesh.spark.session import local_session
from querymesh.spark.shared import Results
from querymesh.spark.train import train
from querymesh.spark.tree_run import TreeRun
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
