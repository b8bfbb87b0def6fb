"""The texts Flink is given: tables over CSV files, the query in two ways, the options of a job."""

from __future__ import annotations

from pathlib import Path

from querymesh_lab.bench.data.join_data import Design
from querymesh_lab.bench.joins.join_case import CORES

CHECKPOINT_EVERY_MS = 1000
WAYS = ("multi-join", "chain")


def flink_sql(design: Design, way: str) -> str:
    """The query for Flink: with its time attributes in the chain, with numbers for MultiJoin."""
    graph = design.graph
    most_ms = design.window_s * 1000
    text = f"{graph.streams[0]} AS {graph.aliases[0]}"
    for number, (stream, alias) in enumerate(zip(graph.streams, graph.aliases, strict=True)):
        if number == 0:
            continue
        on = [
            f"{other.lower()}.{name} = {alias}.{name}"
            for name, other in graph.shared(stream, graph.streams[:number])
        ]
        for place, other in enumerate(graph.aliases[:number]):
            if place == 0 and way == "chain":
                window = f"INTERVAL '{design.window_s}' SECOND"
                on.append(f"{alias}.ts BETWEEN {other}.ts - {window} AND {other}.ts + {window}")
            else:
                on.append(f"{alias}.ts_ms - {other}.ts_ms BETWEEN -{most_ms} AND {most_ms}")
        text += f" JOIN {stream} AS {alias} ON {' AND '.join(on)}"
    ids = ", ".join(f"{alias}.id AS {alias}_id" for alias in graph.aliases)
    return f"SELECT {ids} FROM {text}"


def options(way: str, checkpoints: Path) -> dict[str, str]:
    """Settings of a job; checkpoints are what tells the size of its state."""
    return {
        "parallelism.default": str(CORES),
        "pipeline.object-reuse": "true",
        "table.optimizer.multi-join.enabled": str(way == "multi-join").lower(),
        "execution.checkpointing.interval": f"{CHECKPOINT_EVERY_MS} ms",
        "execution.checkpointing.dir": checkpoints.as_uri(),
    }


def tables(design: Design, folder: Path, way: str) -> list[str]:
    """Statements that make the streams and the result known; only the chain asks for watermarks."""
    statements = []
    late = f"INTERVAL '{design.disorder_s:.3f}' SECOND(2, 3)"
    timed = f", ts AS TO_TIMESTAMP_LTZ(ts_ms, 3), WATERMARK FOR ts AS ts - {late}"
    for stream in design.graph.streams:
        columns = ", ".join(f"{c} BIGINT" for c in _columns(design, stream))
        more = timed if way == "chain" else ""
        source = folder / f"{stream}.csv"
        statements.append(f"CREATE TABLE {stream} ({columns}{more}) WITH ({_files(source)})")
    ids = ", ".join(f"{name} BIGINT" for name in design.graph.ids())
    statements.append(f"CREATE TABLE joined ({ids}) WITH ({_files(folder / 'joined')})")
    return statements


def _files(path: Path) -> str:
    return f"'connector' = 'filesystem', 'path' = '{path.as_uri()}', 'format' = 'csv'"


def _columns(design: Design, stream: str) -> list[str]:
    return ["id", "ts_ms", *design.graph.attributes(stream)]
