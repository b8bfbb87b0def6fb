"""The functions of one run as its driver has them: what they may spend, what was asked of them.

::

    JobFunctions(functions, budget)     learning on the driver asks them, within the budget
      .begin(host) ── FunctionsStart ─> tasks: known answers, and where to ask for leave, and for
                                        what other tasks were told
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from querymesh.errors import OptionError
from querymesh.query.costly.account.allowance import JobAllowance
from querymesh.query.costly.account.permits import Permits
from querymesh.query.costly.account.price import Budget
from querymesh.query.costly.asking import ALWAYS_US
from querymesh.query.costly.in_run import (
    Functions,
    FunctionsStart,
    asking_of,
    known_answers,
    known_asking,
)
from querymesh.query.costly.proxy.audit import Audit
from querymesh.query.costly.sharing.job_answers import JobAnswers, OneFunction
from querymesh.query.costly.sharing.remote_answers import RemoteAnswers
from querymesh.query.costly.tally import Tally
from querymesh.query.predicate.predicate import Predicate
from querymesh.runtime.allowance_server import AllowanceServer

_serving: deque[AllowanceServer] = deque(maxlen=64)
"""Those of the last runs: a plan may run again when nobody holds its DataFrame any more."""


@dataclass
class JobFunctions:
    """Functions of a run, and the budget of all of them."""

    functions: Functions
    budget: Budget | None = None
    _answers: JobAnswers = field(default_factory=JobAnswers)
    _server: AllowanceServer | None = None

    def __post_init__(self) -> None:
        if self.budget is not None and not any(each.price for each in self.functions.values()):
            raise OptionError(
                "budget: no function has a price, so nothing would be spent: give price= to "
                "querymesh.predicate"
            )
        self._rates = {
            each.name: each.calling.rate_limit
            for each in self.functions.values()
            if each.calling.rate_limit is not None
        }
        self._account = JobAllowance(self.budget, self._rates)
        session, answers = self._account.session(), self._answers.session()
        self._askings = [asking_of(each) for each in self.functions.values()]
        for each, asking in zip(self.functions.values(), self._askings, strict=True):
            if self._has_bounds:
                asking.permits = Permits(each.name, each.price, session)
            if self.budget is not None:
                asking.then, asking.seconds_a_unit = self.budget.then, self.budget.seconds_a_unit
            if each.is_costly:
                asking.shared = OneFunction(answers, each.identity, asking.memory.memo.ttl)

    @property
    def _has_bounds(self) -> bool:
        return self.budget is not None or bool(self._rates)

    def begin(
        self, host: str, *, bind: str | None = None, streaming: bool = False
    ) -> FunctionsStart:
        """What tasks are told; `host` is the driver's address as they reach it, `bind` as it has it
        itself."""
        askings = {e.identity: asking_of(e) for e in self.functions.values() if e.proxy}
        known = {name: a.proxy.known for name, a in askings.items() if a.proxy is not None}
        shares = [each.identity for each in self.functions.values() if self._is_shared(each)]
        if (self._has_bounds or shares) and self._server is None:
            self._server = AllowanceServer(self._account, host, bind, answers=self._answers)
            _serving.append(self._server)
        remote = None if self._server is None else self._server.remote
        return FunctionsStart(
            known=known_answers(self.functions),
            allowance=remote if self._has_bounds else None,
            answers=RemoteAnswers(remote) if shares and remote is not None else None,
            shared=frozenset(shares),
            then="stop" if self.budget is None else self.budget.then,
            proxies={name: each for name, each in known.items() if each is not None},
            learn_proxies=streaming,
        )

    def proxy_text(self, asked: Mapping[str, Tally]) -> str:
        """What proxies decide, a line for each, or why they decide nothing; empty without any."""
        lines = []
        for name, each in self.functions.items():
            proxy = asking_of(each).proxy if each.proxy is not None else None
            if proxy is not None:
                found = asked[name].proxied if name in asked else Audit()
                lines.append(f"{each.name}: {proxy.describe(found)}")
        return "\n".join(lines)

    @staticmethod
    def _is_shared(predicate: Predicate) -> bool:
        """Whether workers tell each other what they asked: where a call costs more than to ask the
        driver, and equal inputs have equal answers."""
        if not predicate.may_be_remembered:
            return False
        asking = known_asking(predicate)
        dear = asking is not None and (asking.call_us or 0.0) > ALWAYS_US
        return predicate.is_costly or dear
