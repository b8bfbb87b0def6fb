"""Answers in a folder, shared by tasks and runs: files that are written once and never changed.

::

    <path>/<function>-<hash>/<random>.answers     one for each batch that asked something new
                        └ of the name, the version, the code and the type of the values

A file has its name only when it is complete (`querymesh.storage`), so whoever is killed leaves
nothing that is read. Two tasks that ask the same at the same time both keep their answer: the
same. Whoever finds many small files makes one of them: the new one is complete before the old ones
go, and only what was read into it goes. What cannot be read is passed over, and what cannot be
written is tried again later: the function is asked once more then, and the log says so once.
"""

from __future__ import annotations

import logging
import os
import random
import re
import time
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import blake2b
from threading import Lock

import pyarrow as pa

from querymesh.query.costly.memo import Memo
from querymesh.query.costly.store.kept_answers import (
    FOREVER,
    Answer,
    KeptAnswers,
    answers_of,
    merged,
    together,
    unpacked,
)
from querymesh.query.costly.store.pace import Pace
from querymesh.storage import PART, Storage

MOST_FILES = 64
"""With more than so many files, or up to twice as many, whoever reads them makes one of them."""

FULL_BYTES = 64 << 20
"""A file of that size is not made one with others."""

MOST_HELD_BYTES = 256 << 20
"""A process holds so much of a store, and more where a larger memo is asked for."""

BYTES_AN_ANSWER = 1024
"""For which `Memo.size` has room."""

MOST_WAITING = 10_000
"""So many answers at most wait to be written."""

READERS = 8
"""So many files are read at a time."""

PART_LASTS_S = 86_400.0
"""A file that nobody completed is removed after that time."""

_ENDING = ".answers"
_FORMAT = "answers 1"
_log = logging.getLogger("querymesh")


class AnswerStore:
    """The answers of one version of a function, in one folder."""

    def __init__(self, storage: Storage, memo: Memo, kind: pa.DataType) -> None:
        self._storage = storage
        self._kind = kind
        self._ttl = memo.ttl
        self._most_bytes = max(MOST_HELD_BYTES, memo.size * BYTES_AN_ANSWER)
        self._most_files = random.randint(MOST_FILES, 2 * MOST_FILES)  # not all at the same time
        self._lock = Lock()
        self._held: list[KeptAnswers] = []
        self._waiting: dict[bytes, Answer] = {}
        self._sizes: dict[str, int] = {}
        """Of the files that were read, by name; 0 bytes where there is nothing in them for us."""
        self._looks, self._writes = Pace(), Pace()
        self._told: set[str] = set()

    def find(self, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        """The answers that were kept by anybody, as far as is known; looks for new ones now and
        then."""
        with self._lock:
            if self._looks.is_due():
                with self._looks.one() as look:
                    look.succeeded = self._look()
            not_before = self._not_before()
            parts = [each.find(keys, not_before) for each in self._held]
            parts.append({key: self._waiting[key] for key in keys if key in self._waiting})
            found: dict[bytes, Answer] = {}
            for part in parts:
                for key, answer in part.items():
                    if answer[1] >= max(not_before, found.get(key, answer)[1]):
                        found[key] = answer
            return found

    def keep(self, answers: Mapping[bytes, Answer], *, more: bool = False) -> None:
        """Write answers where others find them; where `more` follow, several times' as one."""
        with self._lock:
            self._waiting |= answers
            if full := len(self._waiting) >= MOST_WAITING:
                self._waiting = dict(list(self._waiting.items())[-MOST_WAITING:])
            if not self._waiting or not self._writes.may(soon=full or not more):
                return
            with self._writes.one() as write:
                write.succeeded = self._write(self._waiting)
            if write.succeeded:
                self._waiting = {}

    def _look(self) -> bool:
        for _ in range(3):  # others may make one of many while they are read
            try:
                names = self._names()
            except (OSError, pa.ArrowException) as problem:
                return self._tell("read", problem)
            found = self._read([name for name in names if name not in self._sizes])
            for name, each in found.items():
                if isinstance(each, KeptAnswers):
                    self._sizes[name] = each.size_bytes
                elif not isinstance(each, FileNotFoundError):
                    self._tell("read", each, name)
                    if not isinstance(each, OSError):  # another time it will be the same
                        self._sizes[name] = 0
            self._hold([each for each in found.values() if isinstance(each, KeptAnswers)])
            if not any(isinstance(each, FileNotFoundError) for each in found.values()):
                break
        listed = set(names)
        self._sizes = {name: size for name, size in self._sizes.items() if name in listed}
        small = sorted((size, name) for name, size in self._sizes.items() if 0 < size < FULL_BYTES)
        if len(small) > self._most_files:
            self._make_one([name for _, name in small[: together([size for size, _ in small])]])
        return True

    def _read(self, names: Sequence[str]) -> dict[str, KeptAnswers | Exception]:
        """The answers of files, or why there are none."""
        if len(names) < 2:
            return {name: self._answers(name) for name in names}
        with ThreadPoolExecutor(READERS) as readers:
            return dict(zip(names, readers.map(self._answers, names), strict=True))

    def _answers(self, name: str) -> KeptAnswers | Exception:
        try:
            return unpacked(self._storage.read(name), self._kind)
        except (OSError, pa.ArrowException, ValueError) as problem:
            return problem

    def _hold(self, new: Sequence[KeptAnswers]) -> None:
        """Hold answers as a few large parts, as far as there is room."""
        held = sorted((each for each in (*self._held, *new) if len(each)), key=len)
        while sum(each.size_bytes for each in held) > self._most_bytes:
            self._tell("held", ValueError(f"they take more than {self._most_bytes >> 20} MB"))
            del held[0]
        count = together([len(each) for each in held])
        if count > 1:
            with suppress(pa.ArrowException):  # more text than an array of texts can have
                held = [merged(held[:count], self._not_before()), *held[count:]]
        self._held = held

    def _write(self, waiting: Mapping[bytes, Answer]) -> bool:
        """Whether they wait no longer."""
        try:
            answers = answers_of(waiting, self._kind)
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as problem:
            self._tell("written", problem)
            return True
        try:
            self._add(answers)
        except (OSError, pa.ArrowException) as problem:
            return self._tell("written", problem)
        self._hold([answers])
        return True

    def _add(self, answers: KeptAnswers) -> None:
        name = f"{uuid.uuid4().hex}{_ENDING}"
        self._storage.make()
        self._storage.write(name, answers.packed())
        self._sizes[name] = answers.size_bytes

    def _make_one(self, names: Sequence[str]) -> None:
        """One file for many. Who reads meanwhile finds the old ones or the new one."""
        parts = [each for each in self._read(names).values() if isinstance(each, KeptAnswers)]
        if len(parts) < len(names):  # somebody else is at it
            return
        try:
            one = merged(parts, self._not_before())
            if len(one):
                self._add(one)
            self._storage.delete(names)
            before_ns = 1e9 * (time.time() - PART_LASTS_S)
            written = self._storage.modified("").items()
            self._storage.delete(
                name for name, at_ns in written if name.endswith(PART) and at_ns < before_ns
            )
        except (OSError, pa.ArrowException) as problem:
            self._tell("tidied", problem)

    def _names(self) -> list[str]:
        return sorted(name for name in self._storage.names() if name.endswith(_ENDING))

    def _not_before(self) -> float:
        return FOREVER if self._ttl is None else time.time() - self._ttl

    def _tell(self, what: str, problem: Exception, name: str = "") -> bool:
        if what not in self._told:
            self._told.add(what)
            _log.warning(
                "remembered answers in %s cannot be %s (%s): the function is asked instead",
                self._storage.where(name), what, problem,
            )  # fmt: skip
        return False


def opened(
    memo: Memo,
    name: str,
    kind: pa.DataType | None = None,
    code: str = "",
) -> AnswerStore | None:
    """The store of a function, if its answers are to be kept.

    `kind` is the type of its values, BOOLEAN unless told otherwise, and `code` what tells it from
    others of its name (`fingerprint`).
    """
    if memo.path is None:
        return None
    path = os.fspath(memo.path)
    kind = pa.bool_() if kind is None else kind
    folder = f"{path.rstrip('/')}/{_folder(name, memo.version, code, str(kind))}"
    storage = Storage(folder, "remembered answers", private=True)
    return AnswerStore(storage, memo, kind)


def _folder(name: str, *identity: str) -> str:
    """A name that is safe everywhere, and of this function alone."""
    asked = blake2b(repr((_FORMAT, name, *identity)).encode(), digest_size=8).hexdigest()
    plain = re.sub(r"[^a-z0-9_]", "_", name.lower())
    return f"{plain[:40]}-{asked}"
