"""Answers in a folder, shared by tasks and runs: files that are written once and never changed.

::

    <path>/<function>/<version>-<random>.arrow    one for each batch that asked something new
                     └ merged by whoever finds many of them

A file has its name only when it is complete (`querymesh.storage`), so whoever is killed leaves
nothing that is read. Two tasks that ask the same at the same time both keep their answer: the same.
What cannot be read is passed over, and what cannot be written is not kept: the function is asked
once more then, and the log says so once.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import pyarrow as pa

from querymesh.query.costly.memo import Memo
from querymesh.storage import PART, Storage

MOST_FILES = 64
"""With more than so many files, whoever reads them makes one of them."""

_ENDING = ".arrow"
_log = logging.getLogger("querymesh")


class AnswerStore:
    """The answers of one version of a function."""

    def __init__(self, storage: Storage, prefix: str) -> None:
        self._storage = storage
        self._prefix = prefix
        self._read: set[str] = set()
        self._told: set[str] = set()

    def unread(self) -> dict[bytes, tuple[Any, float]]:
        """What was kept since this was asked last."""
        try:
            names = self._names()
        except OSError as problem:
            self._tell("read", problem)
            return {}
        found: dict[bytes, tuple[Any, float]] = {}
        for name in names:
            if name not in self._read:
                self._read.add(name)
                found |= self._answers(name)
        if len(names) > MOST_FILES:
            self._merge(names)
        return found

    def keep(self, answers: Mapping[bytes, tuple[Any, float]]) -> None:
        """Write answers where others find them."""
        name = f"{self._prefix}-{uuid.uuid4().hex}{_ENDING}"
        try:
            self._storage.make()
            self._storage.write(name, _packed(answers))
        except (OSError, pa.ArrowException) as problem:
            self._tell("written", problem)
            return
        self._read.add(name)

    def _merge(self, names: Sequence[str]) -> None:
        """One file for many. Who reads meanwhile finds the old ones or the new one."""
        answers: dict[bytes, tuple[Any, float]] = {}
        for name in names:
            answers |= self._answers(name)
        self.keep(answers)
        try:
            self._storage.delete(list(names))
        except OSError as problem:
            self._tell("tidied", problem)

    def _names(self) -> list[str]:
        found = self._storage.names()
        mine = (name for name in found if name.startswith(f"{self._prefix}-"))
        return sorted(name for name in mine if name.endswith(_ENDING) and PART not in name)

    def _answers(self, name: str) -> dict[bytes, tuple[Any, float]]:
        try:
            return _unpacked(self._storage.read(name))
        except FileNotFoundError:  # somebody made one of many
            return {}
        except (OSError, pa.ArrowException, KeyError, ValueError) as problem:
            self._tell("read", problem)
            return {}

    def _tell(self, what: str, problem: Exception) -> None:
        if what not in self._told:
            self._told.add(what)
            _log.warning(
                "remembered answers in %s cannot be %s (%s): the function is asked instead",
                self._storage.folder, what, problem,
            )  # fmt: skip


def opened(memo: Memo, name: str) -> AnswerStore | None:
    """The store of a function, if its answers are to be kept."""
    if memo.path is None:
        return None
    version = blake2b(memo.version.encode(), digest_size=6).hexdigest()
    return AnswerStore(Storage(f"{memo.path.rstrip('/')}/{name}", "remembered answers"), version)


def _packed(answers: Mapping[bytes, tuple[Any, float]]) -> bytes:
    values = [value for value, _ in answers.values()]
    table = pa.table(
        {
            "key": pa.array(list(answers), pa.binary()),
            "value": pa.array(values),
            "at": pa.array([at for _, at in answers.values()], pa.float64()),
        }
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    content = bytes(sink.getvalue())
    return blake2b(content, digest_size=16).digest() + content


def _unpacked(content: bytes) -> dict[bytes, tuple[Any, float]]:
    """Raises ValueError where the file is not as it was written."""
    checksum, content = content[:16], content[16:]
    if blake2b(content, digest_size=16).digest() != checksum:
        raise ValueError("its checksum is wrong")
    table = pa.ipc.open_file(pa.py_buffer(content)).read_all()
    columns = (table.column(name).to_pylist() for name in ("key", "value", "at"))
    return {key: (value, at) for key, value, at in zip(*columns, strict=True)}
