"""The outputs that a query has where Spark makes some of them, or filters them, above it."""

from __future__ import annotations

from querymesh.query.expr import Column, Expr, Literal
from querymesh.query.model import Output
from querymesh.spark.conditions.around import Above
from querymesh.spark.conditions.ask_spark import Understood
from querymesh.spark.conditions.division import Outputs

KEY = "__querymesh_"
"""What the names of columns begin with that only we and Spark know of."""


class Finishing:
    """The outputs that the query itself has, and what Spark makes of them."""

    def __init__(self, asked: Outputs) -> None:
        self.asked = [name for name, _ in asked]
        self.outputs: list[Output] = []
        self.carried: dict[int, str] = {}
        self.conditions: list[Understood] = []
        self.computed: dict[str, Understood] = {}

    def keep(self, name: str, expr: Expr) -> None:
        """An output that the query has by itself."""
        self.outputs.append(Output(name, expr))

    def compute(self, name: str, found: Understood) -> None:
        """An output that Spark computes of others."""
        self.computed[name] = found

    def filter_by(self, found: Understood) -> None:
        """A condition on what comes out."""
        self.conditions.append(found)

    def made(self) -> tuple[Output, ...]:
        """The query's own outputs: those asked for, and those that Spark reads."""
        for found in (*self.conditions, *self.computed.values()):
            for number, expr in {**found.reads, **found.parts}.items():
                self.carried[number] = self._under_some_name(expr)
        return tuple(self.outputs) or (Output(f"{KEY}row", Literal(True)),)

    def above(self) -> Above | None:
        """What Spark does above; None where all is as it was asked for."""
        if not self.computed and not self.conditions:
            return None
        outputs = {name: self.computed.get(name) for name in self.asked}
        return Above(tuple(self.conditions), outputs, self.carried)

    def _under_some_name(self, expr: Expr) -> str:
        for output in self.outputs:
            if output.expr == expr and isinstance(expr, Column):
                return output.name
        name = f"{KEY}carried_{len(self.outputs) + 1}"
        self.outputs.append(Output(name, expr))
        return name
