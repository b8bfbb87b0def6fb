"""Route tokens: the route a ruster still has to go, as a stack of operator indices (QM § 5.2)."""

from __future__ import annotations

from dataclasses import dataclass

OUTPUT = 0
"""Index 0 of the operator index array: the output, where a ruster with an empty token goes."""


@dataclass(frozen=True, slots=True)
class RouteToken:
    """A stack of operator indices, its top first: `<3, 2, 1>` visits 3, then 2, then 1.

    >>> token = RouteToken((3, 2, 1))
    >>> str(token), token.top, str(token.pop())
    ('<3, 2, 1>', 3, '<2, 1>')
    >>> RouteToken(()).top
    0
    """

    stack: tuple[int, ...]

    @property
    def top(self) -> int:
        """The operator to visit next; the output when the stack is empty."""
        return self.stack[0] if self.stack else OUTPUT

    def pop(self) -> RouteToken:
        """What remains of the route once the top operator has done its work."""
        return RouteToken(self.stack[1:])

    def __str__(self) -> str:
        return f"<{', '.join(map(str, self.stack))}>"
