"""How the endpoint behaves: how long it takes, how often it fails and in which way, what it costs.

Faults come by a hash of the seed, the call's body and how often that body came, not by the order of
arrival: whatever runs beside, a run with the same calls meets the same faults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from querymesh_lab.bench.costly.questions import share

Fault = Literal["error", "busy", "garbage", "drop", "hang"]
FAULTS: tuple[Fault, ...] = get_args(Fault)


@dataclass(frozen=True)
class Manners:
    """The settings of an endpoint.

    - `delay_s`: how long each call takes; `delay_per_input_s` more for each input, and at most
      `jitter_s` more by chance
    - `error`, `busy`, `garbage`, `drop`, `hang`: shares of calls that get a 500, a 429 with
      Retry-After, a body that is no JSON, a closed connection, and no answer ever
    - `faults_in_a_row`: after so many faults the same body is answered; None: there is no end
    - `limit_per_s`: more calls in a second get a 429; None: any number
    - `retry_after_s`: what a 429 asks callers to wait
    - `money_per_call`, `money_per_token`: what an answered call costs
    - `times`: of some questions, how many times as long and as dear they are
    - `truth`: a JSON file of questions, for each the answer to every input as JSON writes it; they
      come before the rules
    """

    delay_s: float = 0.0
    delay_per_input_s: float = 0.0
    jitter_s: float = 0.0
    error: float = 0.0
    busy: float = 0.0
    garbage: float = 0.0
    drop: float = 0.0
    hang: float = 0.0
    faults_in_a_row: int | None = None
    limit_per_s: float | None = None
    retry_after_s: float = 0.05
    money_per_call: float = 0.0
    money_per_token: float = 0.0
    times: Mapping[str, float] = field(default_factory=dict)
    truth: str | None = None
    seed: int = 0

    def fault(self, body: str, times_seen: int) -> Fault | None:
        """What goes wrong with a call whose body came so many times before, or nothing."""
        if self.faults_in_a_row is not None and times_seen >= self.faults_in_a_row:
            return None
        drawn = share(f"{self.seed}|{times_seen}|{body}")
        for name in FAULTS:
            drawn -= getattr(self, name)
            if drawn < 0:
                return name
        return None

    def seconds(self, question: str, inputs: int, body: str) -> float:
        """How long a call takes."""
        factor = self.times.get(question, 1.0)
        late = self.jitter_s * share(f"late|{self.seed}|{body}") if self.jitter_s else 0.0
        return factor * (self.delay_s + self.delay_per_input_s * inputs) + late

    def money(self, question: str, tokens: int) -> float:
        """What a call costs that is answered."""
        factor = self.times.get(question, 1.0)
        return factor * (self.money_per_call + self.money_per_token * tokens)

    def as_json(self) -> dict[str, Any]:
        """The settings as they are sent."""
        return asdict(self)
