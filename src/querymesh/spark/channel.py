"""How a running stream gets a new mesh: versioned files in a folder that driver and tasks see.

The plan of a streaming query is fixed when it starts, and so is the function it sends to its tasks.
The mesh is therefore not in the function but in a folder: the driver writes `mesh-000001.json`,
`mesh-000002.json`, … each complete before it has its name; a task looks for the newest when a batch
begins. That is the paper's pointer re-assignment (QM § 5.3): between batches, no restart, and old
and new may be in flight together, since any mesh gives the same result.

The folder lies under the query's checkpoint, so a restarted query goes on with what it learned.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

import pyarrow as pa
from pyarrow import fs

from querymesh.errors import MeshFileError, QueryMeshError, UnsupportedError
from querymesh.optimize.mesh import Mesh
from querymesh.optimize.mesh_file import mesh_from_json, mesh_to_json
from querymesh.query.predicate import Predicate

_NAME = re.compile(r"mesh-(\d{6,})\.json")
_ENOUGH = "enough-rows-profiled"
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_S3A = re.compile(r"^s3[an]://")


class Channel:
    """The folder of mesh versions. Small and picklable: tasks hold a copy."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def open(self) -> int:
        """Make the folder, if it is new, and tell the newest version in it.

        A driver that ended between profiling and publishing left no mesh: rows are profiled again.
        """
        system, folder = self._open()
        system.create_dir(folder, recursive=True)
        version, learning = self.state()
        if version == 0 and not learning:
            system.delete_file(str(PurePosixPath(folder) / _ENOUGH))
        return version

    def publish(self, mesh: Mesh, version: int) -> None:
        """Make a mesh the newest. The folder is not made again: the checkpoint may be gone."""
        self._write(f"mesh-{version:06d}.json", mesh_to_json(mesh).encode())

    def enough(self) -> None:
        """Tell the tasks that no more rows need to be profiled."""
        self._write(_ENOUGH, b"")

    def newest(self) -> int:
        """The newest version; 0 where none was published yet."""
        return self.state()[0]

    def state(self) -> tuple[int, bool]:
        """The newest version, and whether rows should still be profiled."""
        system, folder = self._open()
        selector = fs.FileSelector(folder, allow_not_found=True)
        names = [info.base_name for info in system.get_file_info(selector)]
        versions = [int(found.group(1)) for name in names if (found := _NAME.fullmatch(name))]
        return max(versions, default=0), not versions and _ENOUGH not in names

    def _write(self, name: str, content: bytes) -> None:
        system, folder = self._open()
        target = str(PurePosixPath(folder) / name)
        with system.open_output_stream(f"{target}.part") as out:
            out.write(content)
        system.move(f"{target}.part", target)

    def read(self, version: int, functions: Mapping[str, Predicate]) -> Mesh:
        """A published mesh."""
        system, folder = self._open()
        path = str(PurePosixPath(folder) / f"mesh-{version:06d}.json")
        try:
            with system.open_input_stream(path) as stream:
                text = stream.read().decode()
            return mesh_from_json(text, functions)
        except (OSError, UnicodeDecodeError, QueryMeshError) as problem:
            raise MeshFileError(f"cannot read the mesh {path}: {problem}") from problem

    def _open(self) -> tuple[fs.FileSystem, str]:
        if not _URI.match(self.folder):
            return fs.LocalFileSystem(), self.folder
        try:
            system, path = fs.FileSystem.from_uri(_S3A.sub("s3://", self.folder))
        except (pa.ArrowException, OSError, ValueError) as problem:
            raise UnsupportedError(
                f"the checkpoint {self.folder} cannot be opened for meshes ({problem}): use a path "
                "all executors see, or a file:, hdfs:, s3: or gs: address; or train beforehand"
            ) from problem
        return system, str(path)
