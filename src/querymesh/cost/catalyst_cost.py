"""What a condition costs Catalyst, by its expression: a price for each kind of node.

    us(node)  =  price of its kind  +  price a byte · bytes of the text it reads  +  us(children)

Prices are of one machine (`catalyst_prices.py`) and are multiplied by how much slower or faster
this one is. Regular expressions cost by their form (`regex_cost.py`). Expressions of constants are
computed once a query and cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from querymesh.cost.regex_cost import pattern_cost


class Node(Protocol):
    """An analysed expression of Catalyst's: its class's name, its own arguments, its children."""

    @property
    def kind(self) -> str:
        """The name of its class, such as `RLike`."""

    @property
    def fields(self) -> Mapping[str, Any]:
        """What the expression is made with beside its children, such as a pattern."""

    @property
    def children(self) -> Sequence[Node]:
        """What it is computed from."""


@dataclass(frozen=True)
class Price:
    """Microseconds a row, and for each byte of the text that is read."""

    row_us: float
    byte_us: float = 0.0

    def us(self, length: float) -> float:
        """The price for a text of so many bytes."""
        return self.row_us + self.byte_us * length


@dataclass(frozen=True)
class CostTable:
    """Prices by kind, and how many times as long everything takes on this machine."""

    prices: Mapping[str, Price]
    slower: float = 1.0


@dataclass(frozen=True)
class Estimate:
    """Microseconds a row, and from 0 to 1 how sure that is: below 0.5 it is worth a measurement."""

    us: float
    how_sure: float


UNKNOWN = Price(0.3, 0.003)
UNKNOWN_SURE, KNOWN_SURE, LOOP_SURE = 0.2, 0.8, 0.4
TEXT_BYTES, ELEMENTS = 20.0, 8.0
"""Of a text whose length is not known, and of an array."""


def estimate_us(node: Node, mean_bytes: Mapping[str, float], table: CostTable) -> Estimate:
    """What a condition costs a row; `mean_bytes` are the columns' mean lengths in bytes, by name.

    The mean length of a field of a struct is looked up as `column.field`.
    """
    reading = _Reading(mean_bytes, table.prices)
    us = reading.us(node)
    return Estimate(us * table.slower, reading.how_sure)


def mean_length(node: Node, mean_bytes: Mapping[str, float]) -> float:
    """How many bytes the text has that an expression gives, on average."""
    if node.kind == "Literal":
        return float(len(str(node.fields.get("value") or "")))
    path = field_path(node)
    if path is not None:
        return float(mean_bytes.get(path, TEXT_BYTES))
    if not node.children:
        return TEXT_BYTES
    first = mean_length(node.children[0], mean_bytes)
    if node.kind in ("Concat", "ConcatWs"):
        return sum(mean_length(child, mean_bytes) for child in node.children)
    if node.kind in ("Substring", "GetJsonObject", "RegExpExtract", "ParseUrl", "SubstringIndex"):
        return min(first, TEXT_BYTES)
    if node.kind == "Cast" and not is_text(node.children[0]):
        return min(first, 12.0)
    return first


def field_path(node: Node) -> str | None:
    """`column` or `column.field` of what reads just that."""
    if node.kind == "AttributeReference":
        return str(node.fields["name"])
    if node.kind == "GetStructField":
        above = field_path(node.children[0])
        return None if above is None else f"{above}.{node.fields.get('name')}"
    return None


def is_text(node: Node) -> bool:
    """Whether an expression gives text, as far as its kind tells."""
    if node.kind in ("AttributeReference", "Literal", "Cast", "NamedLambdaVariable"):
        return bool(node.fields.get("dataType") == "string")
    if node.kind == "GetStructField":
        return bool(_field_type(node) == "string")
    return node.kind in TEXT_KINDS


def _field_type(node: Node) -> Any:
    """The type of a struct's field, where the struct is a column."""
    if node.kind == "AttributeReference":
        return node.fields.get("dataType")
    if node.kind != "GetStructField":
        return None
    above = _field_type(node.children[0])
    fields = above.get("fields", []) if isinstance(above, Mapping) else []
    named = [field["type"] for field in fields if field["name"] == node.fields.get("name")]
    return named[0] if named else None


def is_constant(node: Node) -> bool:
    """Whether an expression reads no row."""
    if node.kind in ("AttributeReference", "NamedLambdaVariable", "CommonExpressionRef"):
        return False
    return all(is_constant(child) for child in node.children)


def like_kind(pattern: str) -> str:
    """The kind of node that Catalyst makes of a LIKE.

    >>> like_kind("%x%"), like_kind("x%"), like_kind("%x"), like_kind("x"), like_kind("a%b_c")
    ('Contains', 'StartsWith', 'EndsWith', 'EqualTo text', 'Like')
    """
    body = pattern.strip("%")
    if "%" in body or "_" in body or "\\" in body:
        return "Like"
    begins, ends = pattern.startswith("%"), pattern.endswith("%")
    if begins and ends:
        return "Contains"
    return "EndsWith" if begins else "StartsWith" if ends else "EqualTo text"


class _Reading:
    """One walk through an expression: what it costs, and how sure that is."""

    def __init__(self, mean_bytes: Mapping[str, float], prices: Mapping[str, Price]) -> None:
        self._mean_bytes = mean_bytes
        self._prices = prices
        self.how_sure = KNOWN_SURE

    def us(self, node: Node) -> float:
        """What a node and all below it cost."""
        if is_constant(node):
            return 0.0
        below = [self.us(child) for child in node.children]
        if node.kind in LOOPS:
            return self._price(node.kind, node) + below[0] + self._elements(node) * sum(below[1:])
        return self._own(node) + sum(below)

    def _own(self, node: Node) -> float:
        kind = node.kind
        if kind in PATTERNS and len(node.children) > 1:
            return self._pattern(node)
        if kind in COMPARISONS and any(is_text(child) for child in node.children):
            return self._price("EqualTo text", node)
        if kind in COMPARISONS:
            return self._price("EqualTo", node)
        if kind == "Cast":
            return self._price(cast_kind(node), node)
        if kind in BY_FORMAT:
            self._be_less_sure(LOOP_SURE)
        return self._price(kind, node)

    def _pattern(self, node: Node) -> float:
        text, pattern = node.children[0], node.children[1]
        length = mean_length(text, self._mean_bytes)
        if pattern.kind != "Literal":
            self._be_less_sure(UNKNOWN_SURE)
            return self._price("RLike", node) + pattern_cost("").us(length)
        written = str(pattern.fields.get("value") or "")
        if node.kind == "Like":
            return self._price(like_kind(written), node)
        if node.kind == "ILike":
            return self._price("Lower", node) + self._price(like_kind(written.lower()), node)
        cost = pattern_cost(written)
        self._be_less_sure(cost.how_sure)
        return self._price(node.kind, node) + cost.us(length)

    def _price(self, kind: str, node: Node) -> float:
        price = self._prices.get(kind)
        if price is None:
            self._be_less_sure(UNKNOWN_SURE)
            price = UNKNOWN
        length = mean_length(node.children[0], self._mean_bytes) if node.children else 0.0
        return price.us(length)

    def _elements(self, node: Node) -> float:
        self._be_less_sure(LOOP_SURE)
        path = field_path(node.children[0])
        size = None if path is None else self._mean_bytes.get(path)
        return ELEMENTS if size is None else max(1.0, size / 8.0)

    def _be_less_sure(self, how_sure: float) -> None:
        self.how_sure = min(self.how_sure, how_sure)


def cast_kind(node: Node) -> str:
    """The kind of a cast: prices differ by what is read and made."""
    to = str(node.fields.get("dataType"))
    if is_text(node.children[0]):
        if to in ("string", "binary"):
            return "Cast"
        return (
            "Cast text to time" if to.startswith(("date", "timestamp")) else "Cast text to number"
        )
    return "Cast to text" if to == "string" else "Cast"


COMPARISONS = frozenset(
    {"EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan",
     "GreaterThanOrEqual", "In", "InSet"}
)  # fmt: skip
BY_FORMAT = frozenset({"ParseToTimestamp", "DateFormatClass", "StringSplit", "JsonToStructs"})
"""Kinds whose cost hangs on a format or pattern of which the table knows a simple one."""

PATTERNS = frozenset({"RLike", "Like", "ILike", "RegExpExtract", "RegExpReplace", "RegExpCount",
                      "RegExpExtractAll", "RegExpInStr", "RegExpSubStr"})  # fmt: skip
LOOPS = frozenset({"ArrayExists", "ArrayForAll", "ArrayFilter", "ArrayTransform", "ArrayAggregate",
                   "MapFilter", "TransformKeys", "TransformValues", "ZipWith"})  # fmt: skip
TEXT_KINDS = frozenset(
    {"Lower", "Upper", "Substring", "Concat", "ConcatWs", "StringTrim", "StringTrimLeft",
     "StringTrimRight", "RegExpExtract", "RegExpReplace", "GetJsonObject", "StringReplace",
     "StringTranslate", "Reverse", "DateFormatClass", "ParseUrl", "Md5", "Sha1", "Sha2", "Hex",
     "Base64", "SubstringIndex", "StringLPad", "StringRPad", "InitCap", "FromUnixTime"}
)  # fmt: skip
