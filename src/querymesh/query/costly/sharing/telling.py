"""Answers of one batch as they come: remembered here, and told to the other workers of the job.

::

    calls  ──heard()──> 64 answers, or a quarter of a second ──> memory, its store, the job
           ──end()────> the rest; keys of what failed or was not asked are given back

Whoever is killed in the middle of a batch has lost the last few answers and not all of them, and
nobody waits for a whole batch of another worker.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence

import pyarrow as pa

from querymesh.errors import SetupError
from querymesh.query.costly.memory import Memory, as_objects
from querymesh.query.costly.pieces import Piece
from querymesh.query.costly.sharing.job_answers import SharedAnswers

MOST_WAITING = 64
LONGEST_S = 0.25
"""So many answers, and for so long, wait to be told together."""

_log = logging.getLogger("querymesh")


class Telling:
    """The answers to inputs with these keys, of which `shared` has those that others want."""

    def __init__(
        self, keys: Sequence[bytes], memory: Memory, shared: SharedAnswers | None = None
    ) -> None:
        self.shared = shared
        self._keys = keys
        self._memory = memory
        self._lock = threading.Lock()
        self._waiting: list[tuple[int, pa.Array]] = []
        self._count = 0
        self._heard: set[int] = set()
        self._told: set[bytes] = set()
        self._next_s = time.monotonic() + LONGEST_S

    def heard(self, start: int, values: pa.Array) -> None:
        """A call has answered for the inputs from `start` on. Any thread may say so."""
        with self._lock:
            self._heard.add(start)
            self._waiting.append((start, values))
            self._count += len(values)
            if self._count >= MOST_WAITING or time.monotonic() >= self._next_s:
                self._tell(more=True)

    def end(self, pieces: Sequence[Piece]) -> None:
        """All calls are over: tell what was not heard of, and give back what has no answer."""
        with self._lock:
            good = [piece for piece in pieces if isinstance(piece.result, pa.Array)]
            self._waiting += [(p.start, p.result) for p in good if p.start not in self._heard]
            self._tell(more=self.shared is not None)
            self._give_back()

    def broken_off(self) -> None:
        """There will be no more answers."""
        with self._lock:
            self._tell(more=False)
            self._give_back()

    def _tell(self, *, more: bool) -> None:
        waiting, self._waiting, self._count = self._waiting, [], 0
        self._next_s = time.monotonic() + LONGEST_S
        if not waiting:
            return
        keys = [key for at, values in waiting for key in self._keys[at : at + len(values)]]
        answers = pa.concat_arrays([values for _, values in waiting])
        values = as_objects(answers)
        if values is None:  # they are given back, and asked again by whoever needs them
            return
        self._memory.put(keys, values, more=more)
        self._told.update(keys)
        self._to_all(keys, answers, [])

    def _give_back(self) -> None:
        back = [key for key in self._keys if key not in self._told]
        if back:
            self._to_all([], None, back)

    def _to_all(
        self, keys: Sequence[bytes], answers: pa.Array | None, back: Sequence[bytes]
    ) -> None:
        if self.shared is None:
            return
        try:
            self.shared.tell(keys, answers, back)
        except SetupError as problem:
            _log.warning("the other workers of the job are not told answers: %s", problem)
            self.shared = None
