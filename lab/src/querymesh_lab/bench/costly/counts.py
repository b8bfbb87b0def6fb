"""What the endpoint saw: the only count of calls that nobody can argue with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Counts:
    """All questions together, or one of them.

    - `calls` came, `answered` of them were answered with 200, `faults` the others, by kind
      (`limited` by the endpoint's own limit)
    - `inputs` were in calls that were answered, `distinct` of them differ
    - `most_at_once`: the highest number of calls in flight
    - `tokens`, `money`: of calls that were answered
    - `connections` were opened, `most_connections` at once
    """

    calls: int = 0
    answered: int = 0
    inputs: int = 0
    distinct: int = 0
    most_at_once: int = 0
    tokens: int = 0
    money: float = 0.0
    connections: int = 0
    most_connections: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    by_question: dict[str, Counts] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """As it is sent."""
        return asdict(self)

    @classmethod
    def from_json(cls, sent: dict[str, Any]) -> Counts:
        """As it was sent."""
        parts = {name: cls.from_json(part) for name, part in sent["by_question"].items()}
        return cls(**{**sent, "by_question": parts})


class Counting:
    """Counts as calls come and go, of all questions and of each."""

    def __init__(self) -> None:
        self._of_all = Counts()
        self._seen: dict[str, set[str]] = {}
        self._open = 0
        self._at_once: dict[str, int] = {}

    def connected(self) -> None:
        """A connection was opened."""
        self._open += 1
        self._of_all.connections += 1
        self._of_all.most_connections = max(self._of_all.most_connections, self._open)

    def disconnected(self) -> None:
        """A connection was closed."""
        self._open -= 1

    def began(self, question: str) -> None:
        """A call came."""
        for counts, at_once in self._both(question):
            counts.calls += 1
            counts.most_at_once = max(counts.most_at_once, at_once + 1)
        for name in ("", question):
            self._at_once[name] = self._at_once.get(name, 0) + 1

    def ended(self, question: str) -> None:
        """A call is done with, whatever became of it."""
        for name in ("", question):
            self._at_once[name] -= 1

    def answered(self, question: str, inputs: Sequence[str], tokens: int, money: float) -> None:
        """A call was answered; the inputs are given as they were written."""
        seen = self._seen.setdefault(question, set())
        new = set(inputs) - seen
        seen |= new
        for counts, _ in self._both(question):
            counts.answered += 1
            counts.inputs += len(inputs)
            counts.distinct += len(new)
            counts.tokens += tokens
            counts.money += money

    def failed(self, question: str, fault: str) -> None:
        """A call met a fault."""
        for counts, _ in self._both(question):
            counts.faults[fault] = counts.faults.get(fault, 0) + 1

    def now(self) -> Counts:
        """What was counted until now."""
        return self._of_all

    def start_anew(self) -> None:
        """Forget everything but what is open."""
        self._of_all = Counts(most_connections=self._open)
        self._seen.clear()

    def _both(self, question: str) -> list[tuple[Counts, int]]:
        one = self._of_all.by_question.setdefault(question, Counts())
        at_once = self._at_once
        return [(self._of_all, at_once.get("", 0)), (one, at_once.get(question, 0))]
