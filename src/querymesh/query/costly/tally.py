"""What became of the rows of a function: answered, and asked about."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from querymesh.query.costly.proxy.audit import Audit


@dataclass
class Tally:
    """Counts of one function; those of several tasks add up.

    - `rows`: rows that were to be answered
    - `distinct`: how many of them differed, batch by batch, as far as anybody looked
    - `asked`: rows that the function was asked about
    - `calls`: in so many calls, attempts that failed among them
    - `unasked`: rows that the budget could not pay for
    - `money`: what calls cost, in `price.PARTS`
    - `seconds`: how long that took, several calls at once counted once
    - `proxied`: what a proxy decided of the rows, and what its audits found
    """

    rows: int = 0
    distinct: int = 0
    asked: int = 0
    calls: int = 0
    unasked: int = 0
    money: int = 0
    seconds: float = 0.0
    proxied: Audit = field(default_factory=Audit)

    def add(self, other: Tally) -> None:
        """Add the counts of another task to these."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.proxied = self.proxied.plus(other.proxied)

    def since(self, before: Tally) -> Tally:
        """What came after these counts were `before`.

        >>> Tally(rows=5, asked=3).since(Tally(rows=2, asked=1)).asked
        2
        """
        counts = {name: getattr(self, name) - getattr(before, name) for name in _COUNTS}
        return Tally(**counts, proxied=self.proxied.minus(before.proxied))


_COUNTS = tuple(each.name for each in fields(Tally) if each.name != "proxied")
