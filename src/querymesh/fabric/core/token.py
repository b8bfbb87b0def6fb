"""Route tokens: the route a ruster still has to go, as a stack of operator indices (QM § 5.2).

Where the order is uncertain (QM § 5.4), an entry of the stack is a choice: `<2, 3|1, 4>`. Before a
ruster moves on, one operator of the choice is drawn and put on top; what remains stays a choice, or
becomes certain when one is left.

Where several queries share one pass (QM § 5.2), a token also carries which of them its tuples still
serve, as a bit mask.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

OUTPUT = 0
"""Index 0 of the operator index array: the output, where a ruster with an empty token goes."""


Stack = tuple[int | tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class RouteToken:
    """A stack of operator indices, its top first: `<3, 2, 1>` visits 3, then 2, then 1.

    >>> token = RouteToken((2, (3, 1), 4))
    >>> str(token), token.top, str(token.pop())
    ('<2, 3|1, 4>', 2, '<3|1, 4>')
    >>> token.pop().choices
    (3, 1)
    >>> str(token.pop().choose(3)), str(token.pop().choose(3).pop())
    ('<3, 1, 4>', '<1, 4>')
    >>> str(RouteToken(((3, 1, 4),)).choose(3).pop())
    '<1|4>'
    >>> RouteToken(()).top
    0
    """

    stack: Stack
    serves: int = 1

    @property
    def choices(self) -> tuple[int, ...]:
        """The operators one of which must be chosen to go on; empty where the next is certain."""
        return () if not self.stack or isinstance(self.stack[0], int) else self.stack[0]

    @property
    def top(self) -> int:
        """The operator to visit next; the output when the stack is empty."""
        if not self.stack:
            return OUTPUT
        first = self.stack[0]
        if not isinstance(first, int):
            raise LookupError(f"{self} leaves open where to go next: choose first")
        return first

    @property
    def ahead(self) -> int:
        """How many operators are still to be visited."""
        return sum(1 if isinstance(entry, int) else len(entry) for entry in self.stack)

    @property
    def context(self) -> int:
        """The visit context: the operators still to be visited, as a bit set.

        >>> bin(RouteToken((2, (3, 1), 5)).context)
        '0b101110'
        """
        return _bits(self.stack)

    def choose(self, index: int) -> RouteToken:
        """The token once one of the choices is drawn: it is on top, the others follow."""
        others = tuple(other for other in self.choices if other != index)
        if len(others) == len(self.choices):
            raise LookupError(f"{index} is not among the choices of {self}")
        rest: Stack = others if len(others) < 2 else (others,)
        return RouteToken((index, *rest, *self.stack[1:]), self.serves)

    def pop(self) -> RouteToken:
        """What remains of the route once the top operator has done its work."""
        return RouteToken(self.stack[1:], self.serves)

    def __str__(self) -> str:
        entries = ("|".join(map(str, e)) if isinstance(e, tuple) else str(e) for e in self.stack)
        return f"<{', '.join(entries)}>"


@lru_cache(maxsize=4096)
def _bits(stack: Stack) -> int:
    entries = ((entry,) if isinstance(entry, int) else entry for entry in stack)
    return sum(1 << index for index in chain.from_iterable(entries))


def token_of(steps: tuple[tuple[int, ...], ...]) -> RouteToken:
    """The token of a route given as choices: those of one operator are certain."""
    return RouteToken(tuple(choice[0] if len(choice) == 1 else choice for choice in steps))
