"""QueryMesh: different plans for different data, on Apache Spark.

import querymesh as qm

out = df.transform(qm.where(looks_like_injection, "port IN (22, 445)", "country <> 'US'"))

A name is loaded when it is first used, so that importing the package costs little.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Not when first used: the room `querymesh.query` would take the name, whoever imports it first.
from querymesh.query.parse.query import query

if TYPE_CHECKING:
    from querymesh import indices, policies
    from querymesh.errors import (
        BudgetError,
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
    from querymesh.optimize.placement.advice import Advice
    from querymesh.query.costly.account.price import Budget, Price
    from querymesh.query.costly.memo import Memo
    from querymesh.query.costly.proxy.options import Proxy
    from querymesh.query.model import Query
    from querymesh.query.predicate.decorators import function, predicate
    from querymesh.query.predicate.predicate import Predicate
    from querymesh.runtime.run import Run
    from querymesh.spark.fair import fair, in_rounds
    from querymesh.spark.filters.advise import advise
    from querymesh.spark.remembered import inspect
    from querymesh.spark.results import Results
    from querymesh.spark.run import run, run_all
    from querymesh.spark.session import local_session
    from querymesh.spark.train import train
    from querymesh.spark.where import where

__version__ = "0.1.0"

_FROM = {
    "errors": (
        "BudgetError", "MeshFileError", "OptionError", "PredicateError", "QueryError",
        "QueryMeshError", "SchemaError", "SetupError", "StateError", "TrainingError",
        "UnsupportedError",
    ),
    "mesh.join_mesh": ("JoinMesh", "load"),
    "mesh.mesh": ("Mesh",),
    "optimize.placement.advice": ("Advice",),
    "query.costly.memo": ("Memo",),
    "query.costly.account.price": ("Budget", "Price"),
    "query.costly.proxy.options": ("Proxy",),
    "query.model": ("Query",),
    "query.predicate.decorators": ("function", "predicate"),
    "query.predicate.predicate": ("Predicate",),
    "runtime.run": ("Run",),
    "spark.fair": ("fair", "in_rounds"),
    "spark.filters.advise": ("advise",),
    "spark.remembered": ("inspect",),
    "spark.results": ("Results",),
    "spark.run": ("run", "run_all"),
    "spark.session": ("local_session",),
    "spark.train": ("train",),
    "spark.where": ("where",),
}  # fmt: skip
"""The module of each public name."""

_MODULE_OF = {name: module for module, names in _FROM.items() for name in names}

__all__ = [
    "Advice",
    "Budget",
    "BudgetError",
    "JoinMesh",
    "Memo",
    "Mesh",
    "MeshFileError",
    "OptionError",
    "Predicate",
    "PredicateError",
    "Price",
    "Proxy",
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
    "advise",
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


def __getattr__(name: str) -> Any:
    if name in ("indices", "policies"):
        return import_module(f"querymesh.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"querymesh.{_MODULE_OF[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
