"""A function within one run: the same object in all tasks of a worker, found by its identity.

::

    driver                                          task of a worker
    in_run(functions): each has an identity
    training asks it about sampled rows
    JobFunctions.begin() ── FunctionsStart ──────> begin_functions(): known answers, and where the
                                                   others' are
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from weakref import WeakValueDictionary

from querymesh.query.costly.account.allowance import Allowance
from querymesh.query.costly.account.permits import Permits
from querymesh.query.costly.asking import LOT, Asking
from querymesh.query.costly.memo import Memo
from querymesh.query.costly.memory import Memory
from querymesh.query.costly.proxy.in_use import ProxyInUse
from querymesh.query.costly.sharing.job_answers import OneFunction
from querymesh.query.costly.sharing.remote_answers import RemoteAnswers
from querymesh.query.costly.store.fingerprint import fingerprint
from querymesh.query.costly.store.kept_answers import Answer
from querymesh.query.costly.tally import Tally
from querymesh.worker_cache import WorkerCache

if TYPE_CHECKING:
    from querymesh.query.predicate.predicate import Predicate

_askings: WorkerCache[str, Asking] = WorkerCache(64)
"""By identity, those used last."""

_in_use: WeakValueDictionary[str, Asking] = WeakValueDictionary()
"""By identity, those also that a run or a task still holds: who forgot one would forget the budget
with it."""

Functions = Mapping[str, "Predicate"]
KnownAnswers = Mapping[str, tuple[Mapping[bytes, Answer], float]]
"""By identity, answers, and what one of them cost in microseconds."""


def in_run(functions: Functions) -> dict[str, Predicate]:
    """The functions of a query that is about to run, each with an identity of its own."""
    return {name: replace(each, identity=uuid4().hex) for name, each in functions.items()}


def asking_of(predicate: Predicate) -> Asking:
    """What this process knows of a function in a run."""

    def make() -> Asking:
        memo = predicate.memo if isinstance(predicate.memo, Memo) else Memo()
        code = "" if memo.path is None else fingerprint(predicate.fn)
        return Asking(
            Memory(memo, predicate.name, predicate.returns, code),
            predicate.returns,
            Permits(predicate.name, predicate.price),
            always=predicate.is_costly,
            lot=max(LOT, 4 * predicate.calling.concurrency * (predicate.calling.batch or 1)),
            never=not predicate.may_be_remembered,
            proxy=None if predicate.proxy is None else ProxyInUse(predicate.proxy),
        )

    asking = _in_use.get(predicate.identity) or make()
    _in_use[predicate.identity] = asking
    _askings.put(predicate.identity, asking)
    return asking


def known_asking(predicate: Predicate) -> Asking | None:
    """The same, if it was asked anything yet."""
    return _in_use.get(predicate.identity) if predicate.identity else None


def is_asked_once(predicate: Predicate) -> bool:
    """Whether its options or what was seen of it say that equal inputs should be asked once."""
    asking = known_asking(predicate)
    return predicate.is_costly or (asking is not None and asking.remembers)


def known_answers(functions: Functions) -> KnownAnswers:
    """What training has asked, to travel with the job."""
    found = {}
    for each in functions.values():
        asking = known_asking(each)
        if asking is not None and asking.remembers and asking.call_us is not None:
            found[each.identity] = asking.memory.known(), asking.call_us
    return found


@dataclass(frozen=True)
class FunctionsStart:
    """What tasks are told of the functions of their run; picklable.

    `known` is what was asked before there were tasks. At `allowance` they ask for leave to call, at
    `answers` for what other tasks were told about the functions that are `shared`. `then` is what
    becomes of rows that the budget cannot pay for. `proxies` are those that were learned, as JSON,
    or why not; where there are none, a stream's workers `learn_proxies` from their first rows.
    """

    known: KnownAnswers = field(default_factory=dict)
    allowance: Allowance | None = None
    answers: RemoteAnswers | None = None
    shared: frozenset[str] = frozenset()
    then: str = "stop"
    proxies: Mapping[str, Mapping[str, Any] | str] = field(default_factory=dict)
    learn_proxies: bool = False


def begin_functions(functions: Functions, start: FunctionsStart) -> TaskTallies:
    """Make the functions of a run ready in this worker, unless a task before has."""
    held = []  # however many there are, until the tallies hold them
    for each in functions.values():
        if not each.identity:
            continue
        is_new = known_asking(each) is None
        held.append(asking := asking_of(each))
        if not is_new:
            continue
        if each.identity in start.known:
            answers, asking.call_us = start.known[each.identity]
            asking.memory.learn(answers)
        if start.allowance is not None:
            asking.permits = Permits(each.name, each.price, start.allowance)
            asking.then = start.then
        if start.answers is not None and each.identity in start.shared:
            asking.shared = OneFunction(start.answers, each.identity, asking.memory.memo.ttl)
        if asking.proxy is not None:
            asking.proxy.begin(start.proxies.get(each.identity), learns=start.learn_proxies)
    return TaskTallies(functions)


class TaskTallies:
    """What becomes of the rows of functions from now on."""

    def __init__(self, functions: Functions) -> None:
        self._askings = {n: asking_of(each) for n, each in functions.items() if each.identity}
        self._before = {name: asking.snapshot() for name, asking in self._askings.items()}

    @property
    def problems(self) -> list[str]:
        """Proxies that no longer hold what they promise."""
        proxies = {name: asking.proxy for name, asking in self._askings.items() if asking.proxy}
        return [
            f"{name}: {proxy.fitted.describe()}"
            for name, proxy in proxies.items()
            if proxy.fitted is not None and proxy.fitted.fallen_back is not None
        ]

    def taken(self) -> dict[str, Tally]:
        """By function, what came since this was made or last asked."""
        found = {}
        for name, asking in self._askings.items():
            found[name] = asking.tally.since(self._before[name])
            self._before[name] = asking.snapshot()
        return found
