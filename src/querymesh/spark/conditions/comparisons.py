"""Which conditions are comparisons of columns and constants, by our own reading of them: Catalyst
need not be asked.

What is read as ours never raises (`query/render.py` writes it so), so that such a condition may
come before any other. `facts.is_cheap` says the same of Catalyst's reading.
"""

from __future__ import annotations

from querymesh.query.expr import Call, Cast, Column, Expr, Literal, columns_of, walk

_COMPARING = frozenset(
    {"=", "<>", "<", "<=", ">", ">=", "<=>", "and", "or", "not", "in", "between", "is null",
     "is not null", "isnan", "startswith"}
)  # fmt: skip


def is_comparison(expr: Expr) -> bool:
    """Whether Spark may push the condition into a scan, and it costs next to nothing.

    >>> is_comparison(Call("in", (Column(None, "port"), Literal(22), Literal(445))))
    True
    >>> is_comparison(Call(">", (Call("length", (Column(None, "url"),)), Literal(100))))
    False
    """
    return bool(columns_of(expr)) and all(map(_compares, walk(expr)))


def _compares(node: Expr) -> bool:
    if isinstance(node, Call):
        return node.function in _COMPARING or _is_prefix(node)
    return isinstance(node, Column | Literal) or (isinstance(node, Cast) and node.implicit)


def _is_prefix(call: Call) -> bool:
    """`LIKE 'x%'`, which Spark turns into a comparison."""
    if call.function != "like" or len(call.args) != 2 or not isinstance(call.args[1], Literal):
        return False
    head = str(call.args[1].value).rstrip("%")
    return not any(character in head for character in "%_\\")
