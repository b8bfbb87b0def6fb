"""SQL text, or a list of conditions, to a Query: the only two ways to ask.

The SQL parser takes a while to load, so the modules that use it are imported when text is first
read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from querymesh.errors import QueryError
from querymesh.query.expr import Expr
from querymesh.query.model import Query
from querymesh.query.predicate.decorators import predicate
from querymesh.query.predicate.predicate import Predicate

Functions = Mapping[str, Predicate | Callable[..., object]]

SOURCE = "input"
"""The name of the one relation of a query made of conditions."""

_OWN_WORDS = {
    *("and", "as", "between", "case", "cast", "div", "else", "end", "exists", "false", "from"),
    *("ilike", "in", "is", "join", "like", "not", "null", "on", "or", "rlike", "select", "then"),
    *("true", "try_cast", "using", "when", "where"),
}


def query(sql: str, *, time: str | None = None, functions: Functions | None = None) -> Query:
    """Read a select-project-join query; see the module `types` for what its expressions mean.

    Aggregates, GROUP BY and HAVING stand on top of it as `Query.aggregate`, for Spark to compute.

    `functions` are user functions by the name the SQL calls them, `time` is the column that
    windows go by.
    """
    from querymesh.query.parse.select import read_select

    return read_select(sql, time, registered(functions or {}))


def where(
    conditions: Sequence[Predicate | str],
    functions: Functions | None = None,
    time: str | None = None,
) -> Query:
    """The query that keeps the rows of one relation, `input`, for which all conditions hold."""
    known = registered(functions or {})
    texts: list[str] = []
    for condition in conditions:
        if isinstance(condition, Predicate):
            name = condition.name.lower()
            if name in known and known[name] is not condition:
                raise QueryError(f"two predicates are named {condition.name}: give one a name=")
            _check_name(condition.name)
            if not condition.columns:
                raise QueryError(
                    f"predicate {condition.name} does not say which columns it reads: "
                    f"give columns=[...], or write its call as SQL, '{condition.name}(column)'"
                )
            known[name] = condition
            texts.append(f"{condition.name}()")
        elif isinstance(condition, str):
            texts.append(condition)
        else:
            raise QueryError(_not_a_condition(condition))
    for text in texts:
        condition_of(text, known)
    # A condition may end in a comment, which must not swallow the bracket.
    wrapped = (f"({text}\n)" if "--" in text else f"({text})" for text in texts)
    sql = f"SELECT * FROM {SOURCE}" + (f" WHERE {' AND '.join(wrapped)}" if texts else "")
    return query(sql, time=time, functions=known)


def condition_of(
    text: str, functions: Mapping[str, Predicate], aliases: Sequence[str] = ()
) -> Expr:
    """One condition by itself, so that an error's position is a position in it."""
    from querymesh.query.parse.select import read_condition

    return read_condition(text, functions, aliases)


def registered(functions: Functions) -> dict[str, Predicate]:
    """User functions by lower-case name, each as a `Predicate`."""
    known: dict[str, Predicate] = {}
    for name, fn in functions.items():
        _check_name(name)
        if not callable(fn):
            raise QueryError(f"functions[{name!r}] is no function but {type(fn).__name__}")
        if name.lower() in known:
            raise QueryError(f"two functions are named {name}, whatever their case")
        known[name.lower()] = fn if isinstance(fn, Predicate) else predicate(fn, name=name)
    return known


def _check_name(name: str) -> None:
    if name.lower() in _OWN_WORDS:
        raise QueryError(f"a function cannot be named {name}, which is a word of SQL's own")


def _not_a_condition(condition: object) -> str:
    if callable(condition):
        name = getattr(condition, "__name__", type(condition).__name__)
        return f"{name} is a plain function: decorate it with @qm.predicate(columns=[...])"
    return (
        f"a condition is SQL text or a qm.predicate, not {type(condition).__name__}: "
        'write it as text, such as "port IN (22, 445)"'
    )
