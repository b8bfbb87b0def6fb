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

from pyarrow import fs

from querymesh.errors import MeshFileError
from querymesh.optimize.mesh import Mesh
from querymesh.optimize.mesh_file import mesh_from_json, mesh_to_json
from querymesh.query.predicate import Predicate

_NAME = re.compile(r"mesh-(\d{6,})\.json")


class Channel:
    """The folder of mesh versions. Small and picklable: tasks hold a copy."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def publish(self, mesh: Mesh) -> int:
        """Make a mesh the newest; returns its version."""
        system, folder = self._open()
        system.create_dir(folder, recursive=True)
        version = self.newest() + 1
        target = str(PurePosixPath(folder) / f"mesh-{version:06d}.json")
        with system.open_output_stream(f"{target}.part") as out:
            out.write(mesh_to_json(mesh).encode())
        system.move(f"{target}.part", target)
        return version

    def newest(self) -> int:
        """The newest version; 0 where none was published yet."""
        system, folder = self._open()
        selector = fs.FileSelector(folder, allow_not_found=True)
        names = (_NAME.fullmatch(info.base_name) for info in system.get_file_info(selector))
        return max((int(name.group(1)) for name in names if name), default=0)

    def read(self, version: int, functions: Mapping[str, Predicate]) -> Mesh:
        """A published mesh."""
        system, folder = self._open()
        path = str(PurePosixPath(folder) / f"mesh-{version:06d}.json")
        try:
            with system.open_input_stream(path) as stream:
                text = stream.read().decode()
        except OSError as problem:
            raise MeshFileError(f"cannot read the mesh {path}: {problem}") from problem
        return mesh_from_json(text, functions)

    def _open(self) -> tuple[fs.FileSystem, str]:
        if "://" in self.folder or self.folder.startswith("file:"):
            system, path = fs.FileSystem.from_uri(self.folder)
            return system, str(path)
        return fs.LocalFileSystem(), self.folder
