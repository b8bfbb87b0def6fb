"""Files on the file system a checkpoint lies on: read, mapped, listed, and replaced in one step.

A file never has its name before it is complete: it is written beside it, as `<name>.<random>.part`,
and renamed. Whoever is killed halfway leaves a `.part` and nothing else; of two who write the same
name at the same time the last one wins, whole.

Nothing is flushed to the disk by force (no fsync). A process may be killed at any moment and no
reader sees half a file; a *machine* that loses power may leave a file that has its name and not its
content. Readers therefore check lengths and checksums.
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import IO, Any

import pyarrow as pa
from pyarrow import fs

from querymesh.errors import UnsupportedError

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_S3A = re.compile(r"^s3[an]://")

PART = ".part"
"""How the name of a file ends that is not complete."""


def is_address(path: str) -> bool:
    """Whether a path names its file system, as `s3://bucket/folder` does."""
    return _URI.match(path) is not None


@lru_cache(maxsize=32)
def open_file_system(address: str, use: str, otherwise: str = "") -> tuple[fs.FileSystem, str]:
    """The file system of a folder's address, and the folder's path on it.

    An error says what `use` the folder is for, and ends with what else can be done, `otherwise`.
    """
    if not is_address(address):
        return fs.LocalFileSystem(), address
    try:
        system, path = fs.FileSystem.from_uri(_S3A.sub("s3://", address))
    except (pa.ArrowException, OSError, ValueError) as problem:
        raise UnsupportedError(
            f"the folder {address} cannot be opened for {use} ({problem}): use a path all "
            f"executors see, or a file:, hdfs:, s3: or gs: address{otherwise}"
        ) from problem
    return system, str(path)


class Storage:
    """A folder; every path is relative to it. A file that is not there: FileNotFoundError.

    Where it cannot be opened, the error says what `use` it is for and ends with `otherwise`. What
    is made in a `private` one on a local file system is for its owner only.
    """

    def __init__(
        self, folder: str, use: str = "join state", otherwise: str = "", *, private: bool = False
    ) -> None:
        self.folder = folder.rstrip("/") or "/"
        self._system, self._root = open_file_system(self.folder, use, otherwise)
        self._local = isinstance(self._system, fs.LocalFileSystem)
        self._opener = _open_private if private and self._local else None

    def where(self, path: str) -> str:
        """The full name of a file, for people and as a key."""
        return f"{self.folder}/{path}" if path else self.folder

    def read(self, path: str) -> bytes:
        """All bytes of a file, which is small."""
        if self._local:
            with open(self._full(path), "rb") as file:
                return file.read()
        with self._system.open_input_stream(self._full(path)) as stream:
            return bytes(stream.read())

    def map(self, path: str) -> pa.Buffer:
        """A file's content: mapped where the file system is local, else read into memory.

        A mapped file may be deleted; its space is free when the buffer is gone.
        """
        if not self._local:
            with self._system.open_input_file(self._full(path)) as file:
                return file.read_buffer()
        if os.path.getsize(self._full(path)) == 0:
            return pa.py_buffer(b"")
        # Closing gives the file descriptor back; the buffer keeps the mapping alive.
        with pa.memory_map(self._full(path)) as file:
            return file.read_buffer()

    @contextlib.contextmanager
    def writing(self, path: str) -> Iterator[IO[bytes]]:
        """A stream to write to, which becomes the file when the block ends without an error."""
        part = f"{path}.{uuid.uuid4().hex[:12]}{PART}"
        try:
            with self._create(part) as out:
                yield out
            self._rename(part, path)
        except Exception:
            with contextlib.suppress(OSError):
                self.delete([part])
            raise

    def write(self, path: str, content: bytes) -> None:
        """Make this the content of the file, in one step."""
        with self.writing(path) as out:
            out.write(content)

    def names(self, path: str = "") -> list[str]:
        """What is in a folder; nothing if there is no such folder."""
        if self._local:
            with contextlib.suppress(FileNotFoundError):
                return os.listdir(self._full(path))
            return []
        return [info.base_name for info in self._infos(path)]

    def modified(self, path: str) -> dict[str, int]:
        """The files of a folder and when each was written, in nanoseconds of the file system."""
        return {
            info.base_name: info.mtime_ns for info in self._infos(path) if info.mtime_ns is not None
        }

    def delete(self, paths: Iterable[str]) -> None:
        """Remove files; one that is gone already is fine."""
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                if self._local:
                    os.unlink(self._full(path))
                else:
                    self._system.delete_file(self._full(path))

    def make(self, path: str = "") -> None:
        """Make a folder and those above it, where they are new."""
        if self._opener is not None:
            os.makedirs(self._full(path), mode=0o700, exist_ok=True)
            return
        self._system.create_dir(self._full(path), recursive=True)

    def _full(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def _infos(self, path: str) -> list[Any]:
        selector = fs.FileSelector(self._full(path), allow_not_found=True)
        return list(self._system.get_file_info(selector))

    def _create(self, path: str) -> IO[bytes]:
        if self._local:
            return open(self._full(path), "wb", opener=self._opener)
        stream: IO[bytes] = self._system.open_output_stream(self._full(path))
        return stream

    def _rename(self, old: str, new: str) -> None:
        if self._local:
            os.replace(self._full(old), self._full(new))
        else:
            self._system.move(self._full(old), self._full(new))


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, mode=0o600)
