"""What can be known of an analysed condition without running it: does it raise, is it cheap.

Catalyst itself knows of few expressions that they may raise (`Expression.throwable` is true for
`raise_error` and `assert_true` only), so what cannot is listed here, and all the rest may.
"""

from __future__ import annotations

from typing import Any

from querymesh.spark.conditions.catalyst import Node

_LEAVES = frozenset({"AttributeReference", "Literal", "NamedLambdaVariable"})

_COMPARISONS = frozenset(
    {"EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual"}
)

_LOGIC = frozenset({"And", "Or", "Not", "IsNull", "IsNotNull", "IsNaN", "In", "InSet", "Between"})

_PREFIX = frozenset({"StartsWith"})

SUBQUERIES = frozenset(
    {"ScalarSubquery", "ListQuery", "Exists", "InSubquery", "LateralSubquery", "OuterReference"}
)

CHEAP = _LEAVES | _COMPARISONS | _LOGIC | _PREFIX | {"GetStructField", "Cast", "Alias"}
"""What costs Catalyst some hundredths of a microsecond, and may prune a whole partition."""

_BITS = frozenset(
    {"ShiftLeft", "ShiftRight", "ShiftRightUnsigned", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
     "BitwiseNot"}
)  # fmt: skip
"""What has the type of its first operand, and never overflows."""

_TOTAL = CHEAP | _BITS | {
    # texts
    "Like", "ILike", "RLike", "LikeAll", "LikeAny", "NotLikeAll", "NotLikeAny", "Contains",
    "EndsWith", "Lower", "Upper", "Length", "OctetLength", "BitLength", "StringTrim",
    "StringTrimLeft", "StringTrimRight", "StringTrimBoth", "Substring", "SubstringIndex", "Left",
    "Right", "Concat", "ConcatWs", "StringInstr", "StringLocate", "StringReplace",
    "StringTranslate", "Reverse", "InitCap", "Ascii", "SoundEx", "Levenshtein", "StringSplit",
    "RegExpCount", "RegExpInStr", "RegExpSubStr", "GetJsonObject",
    "JsonObjectKeys", "LengthOfJsonArray", "Base64", "Hex", "Md5", "Sha1", "Sha2", "Crc32",
    "Murmur3Hash", "XxHash64", "FindInSet",
    # choices
    "Coalesce", "If", "CaseWhen", "Nvl", "Nvl2", "NullIf", "NaNvl", "Greatest", "Least",
    "EqualNull", "NullIfZero", "ZeroIfNull",
    # structures
    "CreateArray", "CreateNamedStruct", "CreateStruct", "Size", "ArrayContains",
    "ArraysOverlap", "ArrayPosition", "ArrayDistinct", "ArrayIntersect", "ArrayUnion",
    "ArrayExcept", "ArrayRemove", "ArrayCompact", "SortArray", "Flatten", "GetArrayStructFields",
    "MapKeys", "MapValues", "MapEntries", "MapContainsKey", "GetMapValue", "ArrayExists",
    "ArrayFilter", "ArrayForAll", "ArrayTransform", "MapFilter",
    "TransformValues", "LambdaFunction", "Get",
    # times
    "Year", "Quarter", "Month", "DayOfMonth", "DayOfWeek", "WeekDay", "DayOfYear", "WeekOfYear",
    "Hour", "Minute", "Second", "DateDiff", "DateAdd", "DateSub", "LastDay", "TruncDate",
    "TruncTimestamp", "UnixDate",
    # floating point
    "Sqrt", "Cbrt", "Exp", "Expm1", "Log", "Log10", "Log2", "Log1p", "Sin", "Cos", "Tan", "Asin",
    "Acos", "Atan", "Atan2", "Signum", "Rint", "Pow", "Hypot",
    # what the analyser wraps around others
    "KnownNotNull", "KnownNullable", "KnownFloatingPointNormalized", "NormalizeNaNAndZero",
}  # fmt: skip
"""What gives a value or NULL for every row, whatever its operands hold."""

_ARITHMETIC = frozenset({"Add", "Subtract", "Multiply", "UnaryMinus", "UnaryPositive", "Abs"})
"""What overflows on whole numbers and decimals, and never on floating-point numbers."""

_LITERAL_PATTERN = frozenset(
    {"Like", "ILike", "RLike", "RegExpCount", "RegExpInStr", "RegExpSubStr", "StringSplit"}
)
"""What raises on a pattern that is none: a literal one is found out at once, and by Spark too."""

_WHOLE = ("byte", "short", "integer", "long")
_FLOATING = ("float", "double")
_MOMENTS = (
    {"date", "timestamp"}, {"date", "timestamp_ntz"}, {"timestamp", "timestamp_ntz"},
)  # fmt: skip
_WIDTH = {name: rank for rank, name in enumerate((*_WHOLE, *_FLOATING))}


def may_raise(node: Node) -> bool:
    """Whether the expression could raise on some row."""
    if any(may_raise(child) for child in node.children):
        return True
    if node.kind in _ARITHMETIC:
        return type_of(node) not in _FLOATING
    if node.kind == "Cast":
        return not _widens(type_of(node.children[0]), node.fields.get("dataType"))
    if node.kind in _LITERAL_PATTERN:
        return node.children[1].kind != "Literal"
    return node.kind not in _TOTAL


def is_cheap(node: Node) -> bool:
    """Whether the condition belongs into Spark's own filter below all others: comparisons of
    columns and constants, which Spark may push into the scan, and which cannot raise."""
    read = [each for each in node.walk() if each.kind == "AttributeReference"]
    if not read or not all(each.kind in CHEAP or _is_prefix(each) for each in node.walk()):
        return False
    return not may_raise(node)


def _is_prefix(node: Node) -> bool:
    """`LIKE 'x%'`, which Spark turns into a comparison."""
    if node.kind != "Like" or node.children[1].kind != "Literal":
        return False
    pattern = str(node.children[1].fields.get("value", ""))
    head = pattern.rstrip("%")
    return not any(character in head for character in "%_\\")


def type_of(node: Node) -> Any:
    """The type of the expression's value as Catalyst writes types; None where it is not told."""
    if "dataType" in node.fields:
        return node.fields["dataType"]
    if node.kind in _ARITHMETIC | _BITS:
        return type_of(node.children[0])
    if node.kind in _COMPARISONS | _LOGIC:
        return "boolean"
    if node.kind == "GetStructField":
        return _field_type(type_of(node.children[0]), node.fields.get("ordinal"))
    if node.kind in ("Lower", "Upper", "Concat", "Substring", "StringTrim"):
        return "string"
    if node.kind in ("Length", "Size", "Year", "Month", "DayOfMonth", "Hour", "Minute", "Second"):
        return "integer"
    return None


def _field_type(struct: Any, ordinal: Any) -> Any:
    if isinstance(struct, dict) and isinstance(ordinal, int):
        fields = struct.get("fields", [])
        if ordinal < len(fields):
            return fields[ordinal].get("type")
    return None


def _widens(source: Any, target: Any) -> bool:
    """Whether every value has its like in the target type, so that the cast cannot fail."""
    if source == target or source in ("void", "null"):
        return True
    if target == "string":
        return isinstance(source, str) and source != "string"
    if source in _WIDTH and target in _WIDTH:
        return _WIDTH[source] < _WIDTH[target]
    if source in _WHOLE and isinstance(target, str) and target.startswith("decimal"):
        digits = {"byte": 3, "short": 5, "integer": 10, "long": 19 + 1}[source]
        return _decimal(target)[0] - _decimal(target)[1] >= digits
    if _is_decimal(source):
        if target in _FLOATING:
            return True
        if _is_decimal(target):
            (p, s), (to_p, to_s) = _decimal(source), _decimal(target)
            return to_s >= s and to_p - to_s >= p - s
    return {source, target} in _MOMENTS if isinstance(source, str) else False


def _is_decimal(name: Any) -> bool:
    return isinstance(name, str) and name.startswith("decimal")


def _decimal(name: str) -> tuple[int, int]:
    """Precision and scale.

    >>> _decimal("decimal(10,2)")
    (10, 2)
    """
    precision, _, scale = name.removeprefix("decimal(").rstrip(")").partition(",")
    return int(precision or 10), int(scale or 0)
