"""Whose the state under a checkpoint is: claimed for one query, on the shards of its first run."""

from __future__ import annotations

import json
import re

from querymesh.errors import OptionError
from querymesh.mesh.hypercube import Hypercube
from querymesh.query.join import JoinQuery
from querymesh.query.model import Window
from querymesh.runtime.state.ownership import claim, state_folder
from querymesh.runtime.task.shard_files import Storing
from querymesh.spark.options import RunOptions


def claim_state(join: JoinQuery, options: RunOptions, cube: Hypercube) -> tuple[Storing, Hypercube]:
    """The folder of the state, claimed for this query; the cube is that of the first run."""
    if options.checkpoint is None:
        raise OptionError(
            "a streaming join keeps its state under the query's checkpoint: give checkpoint=, the "
            "directory you also give to writeStream as checkpointLocation"
        )
    folder = state_folder(options.checkpoint)
    description = {
        "the query": _spaced_once(join.query.sql),
        "the time column": str(join.query.time),
    }
    for stream in join.streams:
        description[f"the window of {stream.alias}"] = _window_text(stream.window)
    for alias, schema in join.schemas.items():
        fields = ", ".join(f"{field.name} {field.type}" for field in schema)
        description[f"the columns of {alias}"] = fields
    description["shards"] = str(cube.shards)
    description["shares"] = json.dumps(list(cube.shares))
    adopt = ["shares"] if options.shards is not None else ["shards", "shares"]
    stored = claim(folder, description, adopt=adopt, checkpoint=options.checkpoint)
    shares = tuple(json.loads(stored["shares"]))
    cube = Hypercube(cube.dimensions, shares, int(stored["shards"]))
    return Storing(folder, options.checkpoint, options.watermark_us, options.idle_us), cube


def _spaced_once(sql: str) -> str:
    """The text with one space for any white space that is not in quotes."""
    parts = re.split(r"""('(?:[^'\\]|\\.)*'|"[^"]*"|`[^`]*`)""", sql.strip())
    return "".join(p if k % 2 else re.sub(r"\s+", " ", p) for k, p in enumerate(parts))


def _window_text(window: Window | None) -> str:
    if window is None:
        return "none"
    if window.kind == "rows":
        return f"[ROWS {window.size}]"
    seconds, rest = divmod(window.size, 1_000_000)
    return f"[RANGE {window.size} MICROSECONDS]" if rest else f"[RANGE {seconds} SECONDS]"
