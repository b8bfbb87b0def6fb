"""How a running stream gets a new mesh: versioned files in a folder that driver and tasks see.

The plan of a streaming query is fixed when it starts, and so is the function it sends to its tasks.
The mesh is therefore not in the function but in a folder: the driver writes `mesh-000001.json`,
`mesh-000002.json`, … each complete before it has its name; a task looks for the newest when it
begins. That is the paper's pointer re-assignment (QM § 5.3): no restart, and old and new may be in
flight together, also in one batch, since any mesh gives the same result. In the same way
`ask-000001.json`, … tell the tasks how many rows to profile, `router-000001.json`, … what the
routers of an Eddy have learned, and `index-000001.json`, … how states are indexed. Of each kind the
last few are kept.

The folder lies under the query's checkpoint, so a restarted query goes on with what it learned.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any

from pyarrow import fs

from querymesh.errors import MeshFileError, QueryMeshError
from querymesh.mesh.mesh import Mesh
from querymesh.mesh.mesh_file import mesh_from_json, mesh_to_json
from querymesh.optimize.adapt.budget import Ask
from querymesh.query.model import BoundQuery, Query
from querymesh.runtime.reports import RouterState
from querymesh.runtime.storage import open_file_system

_NAME = re.compile(r"(mesh|ask|router|index)-(\d{6,})\.json")
_ENOUGH = "enough-rows-profiled"

_KEPT = {"mesh": 16, "ask": 4, "router": 8, "index": 8}
"""A task that looked just before still finds what was the newest then."""


@dataclass(frozen=True, slots=True)
class ChannelState:
    """The newest version, 0 if none; whether none can be learned from yet; the newest of others."""

    version: int
    learning: bool
    ask_number: int = 0
    router_number: int = 0
    index_number: int = 0


@dataclass(frozen=True)
class RouterStates:
    """What routers have learned: the newest state of each shard, and what they know together."""

    shards: Mapping[str, RouterState]
    merged: Mapping[str, Any] | None


class Channel:
    """The folder of mesh versions. Small and picklable: tasks hold a copy."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def open(self) -> int:
        """Make the folder, if it is new, and tell the newest version in it.

        A driver that ended between profiling and publishing left no mesh: rows are profiled again.
        What an earlier driver asked for no longer holds.
        """
        system, folder = self._open()
        system.create_dir(folder, recursive=True)
        state = self.state()
        if state.version == 0 and not state.learning:
            system.delete_file(str(PurePosixPath(folder) / _ENOUGH))
        if state.ask_number:
            self.ask(Ask(), state.ask_number + 1)
        return state.version

    def publish(self, mesh: Mesh, version: int) -> None:
        """Make a mesh the newest. The folder is not made again: the checkpoint may be gone."""
        self._tidy("mesh", version)
        self._write(f"mesh-{version:06d}.json", mesh_to_json(mesh).encode())

    def ask(self, ask: Ask, number: int) -> None:
        """Tell the tasks what to profile from the next batch on."""
        self._tidy("ask", number)
        self._write(f"ask-{number:06d}.json", json.dumps(asdict(ask)).encode())

    def asked(self, number: int) -> Ask:
        """What the tasks were told; nothing if that cannot be read: profiling is never a must."""
        system, folder = self._open()
        try:
            with system.open_input_stream(self._path(folder, "ask", number)) as stream:
                return Ask(**json.loads(stream.read()))
        except (OSError, ValueError, TypeError):
            return Ask()

    def enough(self) -> None:
        """Tell the tasks that no more rows need to be profiled to learn a first mesh."""
        self._write(_ENOUGH, b"")

    def tell(self, states: RouterStates, number: int) -> None:
        """Hand on what routers have learned."""
        self._tidy("router", number)
        shards = {shard: [each.batch, each.state] for shard, each in states.shards.items()}
        content = json.dumps({"shards": shards, "merged": states.merged})
        self._write(f"router-{number:06d}.json", content.encode())

    def told(self, number: int) -> RouterStates:
        """What was handed on."""
        system, folder = self._open()
        path = self._path(folder, "router", number)
        try:
            with system.open_input_stream(path) as stream:
                stored = json.loads(stream.read())
            shards = {
                str(shard): RouterState(int(batch), state)
                for shard, (batch, state) in stored["shards"].items()
            }
            return RouterStates(shards, stored["merged"])
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as problem:
            raise MeshFileError(f"cannot read the routers {path}: {problem!r}") from problem

    def router_numbers(self) -> list[int]:
        """The files of routers there are."""
        found = filter(None, map(_NAME.fullmatch, self._names()))
        return [int(each[2]) for each in found if each[1] == "router"]

    def hand_out(self, indices: Mapping[str, Any], number: int) -> None:
        """Tell the tasks how states are to be indexed."""
        self._tidy("index", number)
        self._write(f"index-{number:06d}.json", json.dumps(indices).encode())

    def indices(self, number: int) -> Mapping[str, Any]:
        """What was handed out."""
        system, folder = self._open()
        path = self._path(folder, "index", number)
        try:
            with system.open_input_stream(path) as stream:
                stored: Mapping[str, Any] = json.loads(stream.read())
        except (OSError, ValueError) as problem:
            raise MeshFileError(f"cannot read the indices {path}: {problem!r}") from problem
        return stored

    def newest(self) -> int:
        """The newest version; 0 where none was published yet."""
        return self.state().version

    def state(self) -> ChannelState:
        """What is in the folder."""
        names = self._names()
        newest = dict.fromkeys(_KEPT, 0)
        for found in filter(None, map(_NAME.fullmatch, names)):
            newest[found[1]] = max(newest[found[1]], int(found[2]))
        learning = not newest["mesh"] and _ENOUGH not in names
        return ChannelState(
            newest["mesh"], learning, newest["ask"], newest["router"], newest["index"]
        )

    def _names(self) -> list[str]:
        system, folder = self._open()
        selector = fs.FileSelector(folder, allow_not_found=True)
        return [info.base_name for info in system.get_file_info(selector)]

    def _tidy(self, kind: str, newest: int) -> None:
        system, folder = self._open()
        for found in filter(None, map(_NAME.fullmatch, self._names())):
            if found[1] == kind and int(found[2]) <= newest - _KEPT[kind]:
                system.delete_file(str(PurePosixPath(folder) / found[0]))

    def _path(self, folder: str, kind: str, number: int) -> str:
        return str(PurePosixPath(folder) / f"{kind}-{number:06d}.json")

    def _write(self, name: str, content: bytes) -> None:
        system, folder = self._open()
        target = str(PurePosixPath(folder) / name)
        with system.open_output_stream(f"{target}.part") as out:
            out.write(content)
        system.move(f"{target}.part", target)

    def read(self, version: int, query: Query) -> Mesh:
        """A published mesh of the query."""
        system, folder = self._open()
        path = self._path(folder, "mesh", version)
        try:
            with system.open_input_stream(path) as stream:
                text = stream.read().decode()
            return mesh_from_json(text, asked=query)
        except (OSError, UnicodeDecodeError, QueryMeshError) as problem:
            raise MeshFileError(f"cannot read the mesh {path}: {problem}") from problem

    def _open(self) -> tuple[fs.FileSystem, str]:
        return open_file_system(self.folder, "meshes", "; or train beforehand")


def channel_folder(
    bound: BoundQuery, policy: str, given: Mesh | None, checkpoint: str | None, master: str
) -> str:
    """Where this query's meshes are; another query, policy or trained mesh on the same checkpoint
    has another."""
    if checkpoint is not None:
        operators = [(operator.name, sorted(operator.after)) for operator in bound.operators]
        schema = str(bound.schemas[bound.source.alias])
        what = [bound.query.sql, operators, schema, policy]
        if given is not None and given.is_learned:
            what.append(mesh_to_json(given))
        asked = hashlib.sha256(repr(tuple(what)).encode())
        return f"{str(checkpoint).rstrip('/')}/querymesh/mesh-{asked.hexdigest()[:16]}"
    if master.startswith("local"):
        folder = tempfile.mkdtemp(prefix="querymesh-mesh-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return folder
    raise QueryMeshError(
        "a stream that learns on a cluster hands its mesh to the tasks through a shared folder: "
        "give checkpoint=, the directory you also give to writeStream"
    )
