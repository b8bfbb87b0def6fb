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
import contextlib
import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from querymesh.classify.classifier import ClassifierKind
from querymesh.errors import MeshFileError, QueryMeshError
from querymesh.mesh.mesh import Mesh
from querymesh.mesh.mesh_file import mesh_from_json, mesh_to_json
from querymesh.optimize.adapt.budget import Ask
from querymesh.query.model import BoundQuery, Query
from querymesh.runtime.task_report import RouterSnapshot
from querymesh.storage import Storage

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

    shards: Mapping[str, RouterSnapshot]
    merged: Mapping[str, Any] | None


class Channel:
    """The folder of mesh versions, and who reads classifiers of other kinds than ours. Small and
    picklable: tasks hold a copy."""

    def __init__(self, folder: str, learners: Sequence[ClassifierKind] = ()) -> None:
        self.folder = folder
        self._learners = tuple(learners)

    def open(self) -> int:
        """Make the folder, if it is new, and tell the newest version in it.

        A driver that ended between profiling and publishing left no mesh: rows are profiled again.
        What an earlier driver asked for no longer holds.
        """
        self._storage.make()
        state = self.state()
        if state.version == 0 and not state.learning:
            self._storage.delete([_ENOUGH])
        if state.ask_number:
            self.ask(Ask(), state.ask_number + 1)
        return state.version

    def publish(self, mesh: Mesh, version: int) -> None:
        """Make a mesh the newest. The folder is not made again: the checkpoint may be gone."""
        self._tidy("mesh", version)
        self._storage.write(_file("mesh", version), mesh_to_json(mesh).encode())

    def ask(self, ask: Ask, number: int) -> None:
        """Tell the tasks what to profile from the next batch on."""
        self._tidy("ask", number)
        self._storage.write(_file("ask", number), json.dumps(asdict(ask)).encode())

    def asked(self, number: int) -> Ask:
        """What the tasks were told; nothing if that cannot be read: profiling is never a must."""
        try:
            return Ask(**json.loads(self._storage.read(_file("ask", number))))
        except (OSError, ValueError, TypeError):
            return Ask()

    def enough(self) -> None:
        """Tell the tasks that no more rows need to be profiled to learn a first mesh."""
        self._storage.write(_ENOUGH, b"")

    def tell(self, states: RouterStates, number: int) -> None:
        """Write what the routers of all shards have learned, for the tasks of the next batch."""
        self._tidy("router", number)
        shards = {shard: [each.batch, each.state] for shard, each in states.shards.items()}
        content = json.dumps({"shards": shards, "merged": states.merged})
        self._storage.write(_file("router", number), content.encode())

    def told(self, number: int) -> RouterStates:
        """Read what the routers had learned, from the file of this number."""
        path = _file("router", number)
        try:
            stored = json.loads(self._storage.read(path))
            shards = {
                str(shard): RouterSnapshot(int(batch), state)
                for shard, (batch, state) in stored["shards"].items()
            }
            return RouterStates(shards, stored["merged"])
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as problem:
            where = self._storage.where(path)
            raise MeshFileError(f"cannot read the routers {where}: {problem!r}") from problem

    def router_numbers(self) -> list[int]:
        """The numbers of the files of routers that are in the folder."""
        found = filter(None, map(_NAME.fullmatch, self._storage.names()))
        return [int(each[2]) for each in found if each[1] == "router"]

    def hand_out(self, indices: Mapping[str, Any], number: int) -> None:
        """Write how states are to be indexed, for the tasks of the next batch."""
        self._tidy("index", number)
        self._storage.write(_file("index", number), json.dumps(indices).encode())

    def indices(self, number: int) -> Mapping[str, Any]:
        """Read the index plans from the file of this number, as `hand_out` wrote them."""
        path = _file("index", number)
        try:
            stored: Mapping[str, Any] = json.loads(self._storage.read(path))
        except (OSError, ValueError) as problem:
            where = self._storage.where(path)
            raise MeshFileError(f"cannot read the indices {where}: {problem!r}") from problem
        return stored

    def newest(self) -> int:
        """The newest version; 0 where none was published yet."""
        return self.state().version

    def state(self) -> ChannelState:
        """The newest number of each kind of file in the folder."""
        names = self._storage.names()
        newest = dict.fromkeys(_KEPT, 0)
        for found in filter(None, map(_NAME.fullmatch, names)):
            newest[found[1]] = max(newest[found[1]], int(found[2]))
        learning = not newest["mesh"] and _ENOUGH not in names
        return ChannelState(
            newest["mesh"], learning, newest["ask"], newest["router"], newest["index"]
        )

    def _tidy(self, kind: str, newest: int) -> None:
        found = filter(None, map(_NAME.fullmatch, self._storage.names()))
        past = newest - _KEPT[kind]
        self._storage.delete(
            [name[0] for name in found if name[1] == kind and int(name[2]) <= past]
        )

    def read(self, version: int, query: Query) -> Mesh:
        """A published mesh of the query."""
        path = _file("mesh", version)
        try:
            return mesh_from_json(
                self._storage.read(path).decode(), asked=query, learners=self._learners
            )
        except (OSError, UnicodeDecodeError, QueryMeshError) as problem:
            where = self._storage.where(path)
            raise MeshFileError(f"cannot read the mesh {where}: {problem}") from problem

    def set_aside(self, version: int) -> None:
        """Take a damaged mesh out of the way; its bytes are kept under another name.

        OSError if they cannot be: it stays where it is.
        """
        name = _file("mesh", version)
        with contextlib.suppress(FileNotFoundError):
            self._storage.write(f"{name}.damaged", self._storage.read(name))
            self._storage.delete([name])

    @property
    def _storage(self) -> Storage:
        return Storage(self.folder, "meshes", "; or train beforehand")


def _file(kind: str, number: int) -> str:
    return f"{kind}-{number:06d}.json"


def channel_folder(
    bound: BoundQuery, label: str, given: Mesh | None, checkpoint: str | None, one_machine: bool
) -> str:
    """Where this query's meshes are; another query, policy (`label`) or trained mesh on the same
    checkpoint has another. Without a checkpoint, where driver and tasks are on `one_machine`, it is
    a folder that lasts as long as this process."""
    if checkpoint is not None:
        operators = [(operator.name, sorted(operator.after)) for operator in bound.operators]
        schema = str(bound.schemas[bound.source.alias])
        what = [bound.query.sql, operators, schema, label]
        if given is not None and given.is_learned:
            what.append(mesh_to_json(given))
        asked = hashlib.sha256(repr(tuple(what)).encode())
        return f"{str(checkpoint).rstrip('/')}/querymesh/mesh-{asked.hexdigest()[:16]}"
    if one_machine:
        folder = tempfile.mkdtemp(prefix="querymesh-mesh-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return folder
    raise QueryMeshError(
        "a stream that learns on a cluster hands its mesh to the tasks through a shared folder: "
        "give checkpoint=, the directory you also give to writeStream"
    )
