"""Conditions as people give them to `where`, to one query that the optimizer can work on.

::

    SQL text ──> our own reader: an expression with an Arrow reading, which never raises ──┐
       └─ or ─> Catalyst, taken apart at its ANDs ──> `Opaque`: Catalyst evaluates it      ├─> Query
    Column ───> Catalyst, likewise; UDFs in it are unwrapped: a Python operator            │
    qm.predicate ──> a Python operator ────────────────────────────────────────────────────┘
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BooleanType, NullType

from querymesh.errors import QueryError, QueryMeshError, SchemaError, UnsupportedError
from querymesh.query import expr as ours
from querymesh.query.costly.in_run import in_run
from querymesh.query.expr import (
    Expr,
    Opaque,
    UserCall,
    conjuncts_of,
    rewritten,
    user_calls_of,
    walk,
)
from querymesh.query.model import Query, Relation
from querymesh.query.parse.query import SOURCE, Functions, condition_of, registered
from querymesh.query.predicate.predicate import Predicate
from querymesh.query.render import to_text
from querymesh.spark.conditions.catalyst import Node
from querymesh.spark.conditions.facts import SUBQUERIES, may_raise
from querymesh.spark.conditions.given import Condition
from querymesh.spark.conditions.shown import shown_sql
from querymesh.spark.conditions.spark_errors import in_our_words
from querymesh.spark.context import (
    AnalysedExpression,
    analysed,
    column_of,
    python_worker_settings,
)
from querymesh.spark.filters.native import behind
from querymesh.spark.schema import arrow_schema, arrow_type, has_namesakes, named_once
from querymesh.worker_cache import WorkerCache

_known: WorkerCache[tuple[str, pa.Schema], Expr | QueryMeshError] = WorkerCache(1024)
"""What our own reader made of texts on a schema: to parse one takes about a millisecond."""

_analysed_texts: WorkerCache[tuple[object, ...], AnalysedExpression] = WorkerCache(256)
"""Texts that only Catalyst understands, as it read them in a session, on a schema: one condition
each, which calls no function of the user's. Spark reads them again in every plan."""

_UDF = "PythonUDF"

_NOT_EXACT_WITHOUT_ANSI = {"+", "-", "*", "/", "%", "div", "negative", "abs"}
"""Out of ANSI mode whole numbers wrap around where they overflow, and ours do not."""


@dataclass(frozen=True)
class ReadConditions:
    """A query over one DataFrame, and how Catalyst evaluates its opaque parts, by their keys.

    `schema` are the columns that a name tells.
    `remote` are functions that only tasks can call, by name, with the key of the whole condition:
    Spark evaluates it for a sample. `guarded` are parts that may raise as a sample evaluates them,
    only where the conditions hold that were written before. `trees` are Catalyst's readings of the
    opaque parts. `whole` are conditions as Spark would evaluate them, by each function over Arrow
    arrays that they call.
    """

    query: Query
    schema: pa.Schema
    columns: Mapping[str, Column | str] = field(default_factory=dict)
    remote: Mapping[str, str] = field(default_factory=dict)
    guarded: Mapping[str, tuple[Column | str, ...]] = field(default_factory=dict)
    trees: Mapping[str, Node] = field(default_factory=dict)
    whole: Mapping[str, Column] = field(default_factory=dict)


def read_conditions(
    frame: DataFrame, conditions: Sequence[Condition], functions: Functions | None = None
) -> ReadConditions:
    """The query that keeps the rows of the DataFrame for which all conditions hold."""
    reader = ConditionReader(frame, registered(functions or {}))
    reader.look_ahead([each for each in conditions if isinstance(each, Column)])
    for condition in conditions:
        reader.read(condition)
    texts = [to_text(conjunct) for conjunct in reader.conjuncts]
    sql = f"SELECT * FROM {SOURCE}"
    if texts:
        sql += " WHERE " + " AND ".join(f"({text})" for text in texts)
    query = Query(
        sql=sql,
        relations=(Relation(SOURCE, SOURCE),),
        conjuncts=tuple(reader.conjuncts),
        outputs=None,
        functions=in_run(reader.functions),
        guarded=frozenset(reader.guarded),
    )
    return ReadConditions(
        query,
        reader.schema,
        reader.columns,
        reader.remote,
        reader.guarded_columns,
        reader.trees,
        reader.whole,
    )


class ConditionReader:
    """Reads conditions on one DataFrame, one after the other.

    `conjuncts` are what they became; `guarded` are the places of those that may raise, and `guards`
    the conditions that hold before the next one is evaluated. `columns`, `remote`,
    `guarded_columns`, `trees` and `whole` are as `ReadConditions` has them.
    """

    def __init__(self, frame: DataFrame, functions: dict[str, Predicate]) -> None:
        self.frame = frame
        self.functions = functions
        self.conjuncts: list[Expr] = []
        self.guarded: set[int] = set()
        self.columns: dict[str, Column | str] = {}
        self.remote: dict[str, str] = {}
        self.guarded_columns: dict[str, tuple[Column | str, ...]] = {}
        self.trees: dict[str, Node] = {}
        self.whole: dict[str, Column] = {}
        self.guards: list[str | Column] = []
        self.schema = named_once(arrow_schema(frame))
        self._ahead: dict[int, AnalysedExpression] = {}

    def look_ahead(self, columns: Sequence[Column]) -> None:
        """Have all Columns analysed at once, which takes little longer than one of them."""
        with suppress(AnalysisException, ParseException, UnsupportedError):  # told one by one
            found = analysed(self.frame, columns) if columns else []
            self._ahead = {id(each): one for each, one in zip(columns, found, strict=True)}

    @cached_property
    def ansi(self) -> bool:
        """Whether the session raises where it could give NULL."""
        return self.frame.sparkSession.conf.get("spark.sql.ansi.enabled") == "true"

    @cached_property
    def _worker_settings(self) -> dict[str, str]:
        return python_worker_settings(self.frame.sparkSession)

    def read(self, condition: Condition) -> None:
        """Read one condition; what is wrong with it is said in its own words."""
        if isinstance(condition, Predicate):
            self._predicate(condition)
        elif isinstance(condition, str):
            self._text(condition)
        else:
            self.read_analysed(self._analysed(condition, "the condition"))

    def _predicate(self, condition: Predicate) -> None:
        name = condition.name.lower()
        if name in self.functions and self.functions[name] is not condition:
            raise QueryError(f"two predicates are named {condition.name}: give one a name=")
        if not condition.columns:
            raise QueryError(
                f"predicate {condition.name} does not say which columns it reads: "
                f"give columns=[...], or write its call as SQL, '{condition.name}(column)'"
            )
        self.functions[name] = condition
        args = tuple(self._argument(column) for column in condition.columns)
        self.conjuncts.append(UserCall(name, args))

    def _argument(self, name: str) -> Expr:
        """A column of the DataFrame, or a field within one, as in `payload.size`."""
        lowered = [column.lower() for column in self.frame.columns]
        if (count := lowered.count(name.lower())) > 1:
            raise SchemaError(
                f"column {name} is ambiguous: {count} columns have this name; rename all but one "
                "of them first, with withColumnRenamed or an alias"
            )
        if name.lower() in lowered or "." not in name:
            return ours.Column(None, name)
        found = self._analysed(F.col(name), f"column {name}")
        return self._opaque(found, name)

    def _text(self, text: str) -> None:
        """SQL text: ours where we mean exactly what Spark does, else as Catalyst reads it."""
        read = self._understood(text, self.functions)
        if isinstance(read, QueryMeshError):
            self._catalyst_text(text, read)
            return
        if user_calls_of(read) or not _wraps_without_ansi(read) or self.ansi:
            self.conjuncts += conjuncts_of(read)
            if not user_calls_of(read):
                self.guards.append(text)
            return
        self.read_analysed(self._analysed(F.expr(text), text), text)

    def _understood(self, text: str, functions: Mapping[str, Predicate]) -> Expr | QueryMeshError:
        """The text in our own words, with types that fit; or why it is not."""
        if functions:  # some of which it may call
            return self._understand(text, functions)
        return _known.get_or_make((text, self.schema), lambda: self._understand(text, {}))

    def _understand(self, text: str, functions: Mapping[str, Predicate]) -> Expr | QueryMeshError:
        try:
            read = condition_of(text, functions)
            self._check_types(read)
        except QueryMeshError as problem:
            return problem.with_traceback(None)
        return read

    def _check_types(self, read: Expr) -> None:
        """Bind the condition by itself: what does not fit is told, or left to Catalyst."""
        alone = Query("", (Relation(SOURCE, SOURCE),), conjuncts_of(read), None)
        replace(alone, functions=self.functions).bind({SOURCE: self.schema})

    def _catalyst_text(self, text: str, problem: QueryMeshError) -> None:
        """Text that our own reader does not understand, or refuses; Catalyst has the last word."""
        if not text.strip():
            raise problem
        key = (id(self.frame.sparkSession), self.ansi, text, self.schema)
        if (known := _analysed_texts.get(key)) is not None:
            self._native(known, text.strip(), text)
            return
        try:
            found = analysed(self.frame, [F.expr(text)])[0]
        except (AnalysisException, ParseException) as refused:
            sparks = isinstance(problem, UnsupportedError) or "unknown relation" in str(problem)
            if sparks or has_namesakes(self.frame.columns):
                raise in_our_words(refused, text, self.frame.columns) from None
            raise problem from None
        if found.tree.kind == "And" or any("UDF" in node.kind for node in found.tree.walk()):
            self.read_analysed(found, text)
            return
        _check_condition(found)
        _analysed_texts.put(key, found)
        self._native(found, text.strip(), text)

    def _analysed(self, column: Column, what: str) -> AnalysedExpression:
        if id(column) in self._ahead:
            return self._ahead[id(column)]
        try:
            return analysed(self.frame, [column])[0]
        except (AnalysisException, ParseException) as refused:
            raise in_our_words(refused, what, self.frame.columns) from None

    def read_analysed(self, whole: AnalysedExpression, text: str | None = None) -> None:
        """What Catalyst analysed, taken apart at its top-level ANDs; `text` is how it was written,
        if it was."""
        _check_condition(whole)
        for node, way in whole.tree.conjuncts():
            part = whole.part(way)
            shown = text.strip() if text is not None and not way else shown_sql(part.sql)
            called = self._calling(part, shown) if node.outermost(_UDF) else None
            if called is None:
                self._native(part, shown)
            else:
                self.conjuncts.append(called)

    def _native(self, part: AnalysedExpression, shown: str, text: str | None = None) -> None:
        """A condition for Catalyst; where we know its meaning on Arrow, for both. `text` is all of
        it as it was written, if it was."""
        read = self._arrow_reading(part)
        given: Column | str
        given = text if text is not None else column_of(self.frame.sparkSession, part.expression)
        if read is not None:
            self.conjuncts.append(read)
        else:
            opaque = self._opaque(part, shown, given)
            if may_raise(part.tree):
                self.guarded.add(len(self.conjuncts))
                self.guarded_columns[opaque.key] = (*self.guards, given)
            self.conjuncts.append(opaque)
        self.guards.append(given)

    def _arrow_reading(self, part: AnalysedExpression) -> Expr | None:
        """The same condition in our own words, if we have them all and mean the same."""
        if any(node.kind in ("PythonUDF", "LambdaFunction") for node in part.tree.walk()):
            return None
        read = self._understood(part.sql, {})
        if isinstance(read, QueryMeshError):
            return None
        if _wraps_without_ansi(read) and not self.ansi:
            return None
        return read

    def _opaque(
        self, part: AnalysedExpression, shown: str, given: Column | str | None = None
    ) -> Opaque:
        key = f"__querymesh_{len(self.columns) + 1}"
        if given is None:
            given = column_of(self.frame.sparkSession, part.expression)
        self.columns[key] = given
        self.trees[key] = part.tree
        known = self.schema.names
        read = tuple(ours.Column(None, name) for name in part.tree.references if name in known)
        return Opaque(shown, read, arrow_type(part.type, self.frame), key)

    def _calling(self, part: AnalysedExpression, shown: str) -> Expr | None:
        """A condition with UDFs of the user's own in it, such as `score(x) > 0.5`: a Python
        operator. None where Spark must call one of them, or only Catalyst knows the rest."""
        before = dict(self.functions), dict(self.columns), dict(self.remote)
        text, calls = part.sql, {}
        for number, way in enumerate(part.tree.outermost(_UDF)):
            inner, stand_in = part.part(way), f"__querymesh_call_{number}"
            call = self._user_call(inner, part, shown)
            # Twice the same text may be two lambdas, or a call and a literal that reads like it.
            if call is None or text.count(inner.sql) != 1:
                self.functions, self.columns, self.remote = before
                return None
            text, calls[stand_in] = text.replace(inner.sql, f"`{stand_in}`"), call
        try:
            read = rewritten(
                condition_of(text, {}),
                lambda e: calls.get(e.name) if isinstance(e, ours.Column) else None,
            )
            self._check_types(read)
        except QueryMeshError:
            read = None
        if read is None or (_wraps_without_ansi(read) and not self.ansi):
            self.functions, self.columns, self.remote = before
            return None
        return read

    def _user_call(
        self, part: AnalysedExpression, whole: AnalysedExpression, shown: str
    ) -> UserCall | None:
        """The call of a UDF, registered under a name of its own; None where Spark must call it."""
        from querymesh.spark.udfs import unwrap

        call = unwrap.unwrapped(self.frame.sparkSession, part, self._worker_settings)
        if call is None:
            return None
        name = self._free_name(call.name)
        labels = [shown_sql(argument.sql) for argument in call.arguments]
        args: list[Expr] = []
        for argument in call.arguments:
            name_read = str(argument.tree.fields.get("name"))
            if argument.tree.kind == "AttributeReference" and name_read in self.schema.names:
                args.append(ours.Column(None, name_read))
            else:
                args.append(self.argument(argument))
        self.functions[name] = unwrap.as_predicate(call, name, labels)
        self.whole.pop(name, None)
        if unwrap.takes_arrow(call):
            self.whole[name] = column_of(self.frame.sparkSession, whole.expression)
        if not unwrap.loads_on_driver(call):
            self.remote[name] = self._opaque(whole, shown).key
        return UserCall(name, tuple(args))

    def argument(self, argument: AnalysedExpression) -> Opaque:
        """An argument that Catalyst computes: for rows that an earlier condition drops it may
        raise, where plain Spark would not have come to them."""
        opaque = self._opaque(argument, shown_sql(argument.sql))
        if may_raise(argument.tree):
            self.columns[opaque.key] = behind(self.guards, self.columns[opaque.key])
        return opaque

    def _free_name(self, name: str) -> str:
        plain = "".join(c if c.isalnum() or c == "_" else "_" for c in name).strip("_") or "udf"
        plain = plain if not plain[0].isdigit() else f"udf_{plain}"
        found, copy = plain.lower(), 1
        while found in self.functions:
            copy += 1
            found = f"{plain.lower()}_{copy}"
        return found


def _check_condition(whole: AnalysedExpression) -> None:
    """Refuse what has no one answer for a row, or is no condition."""
    shown = shown_sql(whole.sql)
    if any(node.kind in SUBQUERIES for node in whole.tree.walk()):
        raise UnsupportedError(f"subquery in {shown}: join its result as a look-up table instead")
    if not whole.deterministic:
        raise UnsupportedError(
            f"{shown} is not deterministic: its order among other conditions would change the "
            "result; make it a column of the DataFrame beforehand, and filter by that"
        )
    if not isinstance(whole.type, BooleanType | NullType):
        kind = whole.type.simpleString().upper()
        raise SchemaError(f"{shown} is {kind}, not a condition; compare it")


def _wraps_without_ansi(read: Expr) -> bool:
    return any(
        isinstance(node, ours.Cast)
        or (isinstance(node, ours.Call) and node.function in _NOT_EXACT_WITHOUT_ANSI)
        for node in walk(read)
    )
