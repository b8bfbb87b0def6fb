"""Files on the command line: `Name=path` inputs, their formats, and modules with predicates."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from typer import BadParameter

from querymesh.errors import QueryMeshError
from querymesh.mesh.join_mesh import JoinMesh
from querymesh.optimize.shards.join_shards import join_cube, shard_count
from querymesh.query.join import JoinQuery
from querymesh.query.model import Query
from querymesh.query.parse.query import query
from querymesh.query.predicate.predicate import Predicate
from querymesh.spark.inputs import bind_inputs

FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json"}
_DEFAULTS = {"csv": {"header": "true", "inferSchema": "true"}}


@dataclass(frozen=True)
class Reader:
    """How files are read: the format, told by their names if it is None, and Spark's options for
    it, which go before our own for CSV (a header, types inferred)."""

    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def style(self, path: str) -> str:
        """The format of a file or directory, which must exist."""
        _check_exists(path)
        return self.format or _format_of(path)

    def options_for(self, style: str) -> dict[str, str]:
        """The options that files of a format are read with."""
        given = {name.lower(): value for name, value in self.options.items()}
        ours = _DEFAULTS.get(style, {})
        return {**{k: v for k, v in ours.items() if k.lower() not in given}, **self.options}


def reader_from(format: str | None, options: Iterable[str] | None) -> Reader:
    """The reader of `--format` and `--option KEY=VALUE`, each of which may be given once."""
    found: dict[str, str] = {}
    for text in options or ():
        name, equals, value = text.partition("=")
        if not (name.strip() and equals):
            raise BadParameter(f"{text!r} is no option: write KEY=VALUE, as in delimiter=;")
        if name.strip().lower() in map(str.lower, found):
            raise BadParameter(f"option {name.strip()} is given twice")
        found[name.strip()] = value
    return Reader(format.strip().lower() if format else None, found)


def split_inputs(given: Iterable[str]) -> dict[str, str]:
    """The paths of `Name=path` pairs by name; each name may be given once."""
    paths: dict[str, str] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not (name.strip() and equals and path.strip()):
            raise BadParameter(f"{text!r} is no input: write Name=path, as in Stock=stock.parquet")
        if name.strip() in paths:
            raise BadParameter(f"{name.strip()} is given twice")
        paths[name.strip()] = path.strip()
    return paths


def read_file(spark: SparkSession, path: str, reader: Reader) -> DataFrame:
    """A file, or a directory of files, as a DataFrame."""
    style = reader.style(path)
    try:
        return spark.read.format(style).options(**reader.options_for(style)).load(path)
    except (PySparkException, Py4JJavaError) as refused:  # PySpark knows no type for this one
        if "DATA_SOURCE_NOT_FOUND" not in str(refused):
            raise
        raise QueryMeshError(
            f"Spark has no reader for the format {style}: csv, json, orc, parquet, text and xml "
            "come with it"
        ) from refused


def read_files(
    spark: SparkSession, paths: Mapping[str, str], reader: Reader
) -> dict[str, DataFrame]:
    """Each file of `Name=path` pairs as a DataFrame, under its name."""
    return {name: read_file(spark, path, reader) for name, path in paths.items()}


def read_query(path: Path, functions: str | None, time: str | None) -> Query:
    """The query of a file with SQL, with the predicates of a module and the column of time."""
    text = path.read_text(encoding="utf-8").strip().rstrip(";")
    return query(text, time=time, functions=load_functions(functions))


def stream_names(asked: Query, data: Mapping[str, DataFrame]) -> set[str]:
    """The relations that are streams, in lower case: those of a join, or the one source."""
    bound = bind_inputs(asked, data).bound
    if isinstance(bound, JoinQuery):
        return {stream.name.lower() for stream in bound.streams}
    return {bound.source.name.lower()}


def spread_over(mesh: JoinMesh, data: Mapping[str, DataFrame], shards: int) -> JoinMesh:
    """The mesh of a join as it will run on so many shards."""
    bound = bind_inputs(mesh.query.asked or mesh.query, data).bound
    assert isinstance(bound, JoinQuery)
    count = shard_count(bound, shards, shards)
    return replace(mesh, cube=join_cube(bound, count, mesh.rates))


def as_stream(batch: DataFrame, path: str, reader: Reader, files: int | None = None) -> DataFrame:
    """The same directory as a stream of its files, so many a batch at most.

    A stream needs its schema beforehand.
    """
    if not Path(path).is_dir():
        raise QueryMeshError(f"{path} is a single file: --stream reads a directory of files")
    style = reader.style(path)
    stream = batch.sparkSession.readStream.format(style).options(**reader.options_for(style))
    if files is not None:
        stream = stream.option("maxFilesPerTrigger", files)
    return stream.schema(batch.schema).load(path)


def write_format(path: Path) -> str:
    """The format that the name of an output asks for; a name without an ending means Parquet."""
    if not path.suffix:
        return "parquet"
    return _known(path.suffix, str(path))


def _check_exists(path: str) -> None:
    if "://" not in path and not Path(path).exists():
        raise QueryMeshError(f"there is no file or directory {path}")


def _format_of(path: str) -> str:
    suffix = Path(path).suffix
    if Path(path).is_dir() and suffix not in FORMATS:
        inside = {
            file.suffix
            for file in Path(path).rglob("*")
            if file.is_file() and file.name[0] not in "._"
        }
        if len(inside) != 1:
            kinds = ", ".join(sorted(inside)) or "nothing"
            raise QueryMeshError(
                f"cannot tell the format of the directory {path}, which holds {kinds}: "
                f"it must hold files of one kind: {', '.join(FORMATS)}; or give --format"
            )
        suffix = inside.pop()
    return _known(suffix, path)


def _known(suffix: str, path: str) -> str:
    if suffix not in FORMATS:
        raise QueryMeshError(
            f"cannot tell the format of {path} by its ending {suffix!r}: use {', '.join(FORMATS)}; "
            "an input's can be given by --format"
        )
    return FORMATS[suffix]


def load_functions(name: str | None) -> dict[str, Predicate | Callable[..., Any]]:
    """The predicates of a module or file: its `predicate` objects, and its dict `functions`."""
    if name is None:
        return {}
    module = _module(name)
    # Spark's Python workers cannot import this module: send what it defines, not its name.
    cloudpickle.register_pickle_by_value(module)
    found: dict[str, Predicate | Callable[..., Any]] = {
        value.name: value for value in vars(module).values() if isinstance(value, Predicate)
    }
    listed = getattr(module, "functions", {})
    if not isinstance(listed, dict):
        raise QueryMeshError(
            f"{name}: functions must be a dict of names, not {type(listed).__name__}"
        )
    found.update(listed)
    if not found:
        raise QueryMeshError(
            f"{name} has no predicates: decorate a function with @querymesh.predicate, or give a "
            "dict named functions"
        )
    return found


def _module(name: str) -> ModuleType:
    path = Path(name)
    try:
        if path.suffix != ".py":
            if "" not in sys.path:
                sys.path.insert(0, "")
            return importlib.import_module(name)
        spec = importlib.util.spec_from_file_location(f"querymesh_functions_{path.stem}", path)
        if not path.is_file() or spec is None or spec.loader is None:
            raise QueryMeshError(f"there is no file {path}")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module
    except QueryMeshError:
        raise
    except Exception as problem:
        raise QueryMeshError(
            f"cannot load {name}: {type(problem).__name__}: {problem}"
        ) from problem
