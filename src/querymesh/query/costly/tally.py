"""What became of the rows of a function: answered, and asked about."""

from __future__ import annotations

from dataclasses import dataclass, fields


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
    """

    rows: int = 0
    distinct: int = 0
    asked: int = 0
    calls: int = 0
    unasked: int = 0
    money: int = 0
    seconds: float = 0.0

    def add(self, other: Tally) -> None:
        """Add the counts of another task to these."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def since(self, before: Tally) -> Tally:
        """What came after these counts were `before`.

        >>> Tally(rows=5, asked=3).since(Tally(rows=2, asked=1))
        Tally(rows=3, distinct=0, asked=2, calls=0, unasked=0, money=0, seconds=0.0)
        """
        return Tally(
            **{f.name: getattr(self, f.name) - getattr(before, f.name) for f in fields(self)}
        )
