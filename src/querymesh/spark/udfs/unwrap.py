"""A UDF taken out of a Column: the function itself, and what it is called with.

F.col("a")  F.upper("b")                AttributeReference  Upper         arguments
        \\   /                                           \\   /
is_attack(…, …)          ─analysed─>              PythonUDF is_attack     SparkFunction
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.util import PythonEvalType

from querymesh.query.predicate.predicate import Predicate
from querymesh.spark.conditions.catalyst import Node
from querymesh.spark.context import (
    AnalysedExpression,
    analysed,
    python_worker_settings,
)
from querymesh.spark.udfs.pickled_results import is_known_to_pickle
from querymesh.spark.udfs.python_udf import CarriedBroadcasts, python_udf
from querymesh.spark.udfs.spark_function import SparkFunction

EVAL_TYPES = (
    PythonEvalType.SQL_BATCHED_UDF,
    PythonEvalType.SQL_ARROW_BATCHED_UDF,
    PythonEvalType.SQL_SCALAR_PANDAS_UDF,
    PythonEvalType.SQL_SCALAR_PANDAS_ITER_UDF,
    PythonEvalType.SQL_SCALAR_ARROW_UDF,
    PythonEvalType.SQL_SCALAR_ARROW_ITER_UDF,
)
"""The kinds of UDFs that give a value for each row."""

ARROW_TYPES = (PythonEvalType.SQL_SCALAR_ARROW_UDF, PythonEvalType.SQL_SCALAR_ARROW_ITER_UDF)

_SIMPLE = (
    *(T.BooleanType, T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType),
    *(T.DoubleType, T.DecimalType, T.StringType, T.CharType, T.VarcharType, T.BinaryType),
    *(T.DateType, T.TimestampType, T.TimestampNTZType, T.DayTimeIntervalType, T.NullType),
)


@dataclass(frozen=True)
class SparkFunctionCall:
    """A UDF and what it is called with.

    `arguments` are any expressions of Catalyst's, one for each array that `function` takes.
    `deterministic` is false after `asNondeterministic()`, and where an argument is random.
    """

    name: str
    function: SparkFunction
    arguments: tuple[AnalysedExpression, ...]
    deterministic: bool

    @property
    def eval_type(self) -> int:
        """Which kind of UDF it is, as PySpark numbers them."""
        return self.function.eval_type

    @property
    def returns(self) -> T.DataType:
        """The type that it was declared with."""
        return self.function.returns


def why_left_to_spark(tree: Node) -> str | None:
    """Why Spark should evaluate an expression itself, if its kind says so already.

    `unwrapped` knows one reason more: a type that only Spark carries to Python.
    """
    if tree.kind == "TranspiledPythonUDF":
        return "Spark runs this UDF as SQL (transpilePyUDFs)"
    if tree.kind != "PythonUDF":
        return "it is not the call of a UDF"
    if find_spec("pyspark.worker_message") is None:
        return "taking UDFs over needs PySpark 4.3 or newer"
    if tree.fields["evalType"] not in EVAL_TYPES:
        return "it is no UDF that gives a value for each row"
    arguments = _chain(tree)[-1].children
    if any("UDF" in node.kind for argument in arguments for node in argument.walk()):
        return "it is called with what another UDF gives, in a way that Spark does not chain"
    return None


def unwrapped(
    session: SparkSession,
    expression: AnalysedExpression,
    settings: dict[str, str] | None = None,
) -> SparkFunctionCall | None:
    """The UDF that an analysed expression calls; None where it calls none, or Spark keeps it.

    `f(g(x))` is one function where both are of one kind and `f` takes nothing else: then Spark
    chains them in Python too, and `f` gets what `g` returned, unconverted. `settings` are what
    Spark tells its Python workers, where that is known.
    """
    if why_left_to_spark(expression.tree) is not None:
        return None
    depth = len(_chain(expression.tree))
    calls = [expression.part((0,) * level) for level in range(depth)]
    found = [python_udf(call.expression) for call in calls]
    returns = calls[0].type
    innermost = calls[-1]
    keywords = [_keyword(child) for child in innermost.tree.children]
    ways = [(i,) if keyword is None else (i, 0) for i, keyword in enumerate(keywords)]
    arguments = [innermost.part(way) for way in ways]
    types = [argument.type for argument in arguments]
    without_arrow = expression.tree.fields["evalType"] == PythonEvalType.SQL_BATCHED_UDF
    if without_arrow and not is_known_to_pickle(returns):
        return None
    if not all(_travels(each, with_maps=not without_arrow) for each in (returns, *types)):
        return None
    if not arguments:
        arguments = analysed(session.range(1), [F.lit(True)])
        types = [T.BooleanType()]
    function = SparkFunction(
        commands=tuple(udf.command for udf in reversed(found)),
        eval_type=int(expression.tree.fields["evalType"]),
        keywords=tuple(keywords),
        arguments=T.StructType([T.StructField(f"_{i}", each) for i, each in enumerate(types)]),
        returns=returns,
        settings=python_worker_settings(session) if settings is None else settings,
        broadcasts=CarriedBroadcasts([each for udf in found for each in udf.broadcasts]),
    )
    name = str(expression.tree.fields["name"])
    return SparkFunctionCall(name, function, tuple(arguments), expression.deterministic)


def as_predicate(call: SparkFunctionCall, name: str, argument_columns: Sequence[str]) -> Predicate:
    """The UDF as a predicate over columns that hold its arguments, in their order. One that adds to
    an accumulator is called for every row: what it adds counts rows, not inputs."""
    from querymesh.spark.udfs.loaded_function import accumulates

    return Predicate(
        fn=call.function,
        name=name,
        columns=tuple(argument_columns),
        returns=call.function.returns_arrow,
        memo=False if any(map(accumulates, call.function.commands)) else None,
    )


def takes_arrow(call: SparkFunctionCall) -> bool:
    """Whether the function is one over Arrow arrays, which Spark calls as cheaply as we do."""
    return call.eval_type in ARROW_TYPES


def loads_on_driver(call: SparkFunctionCall) -> bool:
    """Whether the driver can call the function too, as a profile of a sample wants to.

    Not with broadcasts, among which every large closure is: only tasks can read them. Nor where
    it adds to an accumulator, which the driver would change at once.
    """
    if len(call.function.broadcasts):
        return False
    from querymesh.spark.udfs.loaded_function import accumulates, loaded

    try:
        if any(map(accumulates, call.function.commands)):
            return False
        loaded(call.function)
    except Exception:  # whatever unpickling may raise: a module that only the workers have, say
        return False
    return True


def _chain(tree: Node) -> list[Node]:
    """The UDFs that Spark calls one with the other's result within Python, the outermost first."""
    chain = [tree]
    while (
        len(chain[-1].children) == 1
        and (inner := chain[-1].children[0]).kind == "PythonUDF"
        and inner.fields["evalType"] == tree.fields["evalType"]
    ):
        chain.append(inner)
    return chain


def _keyword(argument: Node) -> str | None:
    is_named = argument.kind == "NamedArgumentExpression"
    return str(argument.fields["key"]) if is_named else None


def _travels(kind: T.DataType, with_maps: bool) -> bool:
    """Whether Spark sends this type to every kind of Python function alike.

    Maps come in the order of Java's hashes to a function without Arrow.
    """
    if isinstance(kind, T.ArrayType):
        return _travels(kind.elementType, with_maps)
    if isinstance(kind, T.MapType):
        parts = (kind.keyType, kind.valueType)
        return with_maps and all(_travels(part, with_maps) for part in parts)
    if isinstance(kind, T.StructType):
        return all(_travels(each.dataType, with_maps) for each in kind)
    return isinstance(kind, _SIMPLE)
