"""What is known of an analysed condition, by its tree alone: no session is needed."""

import json

import pytest

from querymesh.spark.conditions.catalyst import Node, node_from_json
from querymesh.spark.conditions.facts import is_cheap, may_raise, type_of

A = Node("AttributeReference", {"name": "a", "dataType": "long"})
I = Node("AttributeReference", {"name": "i", "dataType": "integer"})  # noqa: E741
X = Node("AttributeReference", {"name": "x", "dataType": "double"})
S = Node("AttributeReference", {"name": "s", "dataType": "string"})
D = Node("AttributeReference", {"name": "d", "dataType": "decimal(10,2)"})
P = Node(
    "AttributeReference",
    {"name": "p", "dataType": {"type": "struct", "fields": [{"name": "n", "type": "long"}]}},
)


def literal(value, kind="integer"):
    return Node("Literal", {"value": str(value), "dataType": kind})


def node(kind, *children, **fields):
    return Node(kind, fields, children)


def cast(child, kind):
    return node("Cast", child, dataType=kind)


def test_a_tree_is_read_from_the_list_that_catalyst_writes():
    listed = [
        {"class": "org.apache.And", "num-children": 2},
        {"class": "org.apache.And", "num-children": 2},
        {"class": "x.IsNotNull", "num-children": 1},
        {"class": "x.AttributeReference", "num-children": 0, "name": "b"},
        {"class": "x.RLike", "num-children": 2},
        {"class": "x.AttributeReference", "num-children": 0, "name": "a"},
        {"class": "x.Literal", "num-children": 0, "value": "q"},
        {"class": "x.AttributeReference", "num-children": 0, "name": "b"},
    ]
    tree = node_from_json(json.dumps(listed))
    assert tree.references == ("b", "a")
    parts = tree.conjuncts()
    assert [(part.kind, way) for part, way in parts] == [
        ("IsNotNull", (0, 0)),
        ("RLike", (0, 1)),
        ("AttributeReference", (1,)),
    ]


def test_an_or_is_one_condition():
    tree = node("Or", node("And", A, A), A)
    assert [way for _, way in tree.conjuncts()] == [()]


@pytest.mark.parametrize(
    "condition",
    [
        node("GreaterThan", A, literal(3, "long")),
        node("In", S, literal("x", "string"), literal("y", "string")),
        node("IsNull", P),
        node("Not", node("EqualTo", S, literal("x", "string"))),
        node("Like", S, literal("abc%", "string")),
        node("StartsWith", S, literal("abc", "string")),
        node("GreaterThan", node("GetStructField", P, ordinal=0), literal(3, "long")),
        node("LessThan", cast(I, "long"), A),
        node("Or", node("LessThan", A, A), node("IsNotNull", X)),
        node("EqualTo", cast(A, "decimal(20,0)"), literal("9007199254740993", "decimal(20,0)")),
    ],
)
def test_comparisons_of_columns_and_constants_are_left_to_spark(condition):
    assert is_cheap(condition)
    assert not may_raise(condition)


@pytest.mark.parametrize(
    "condition",
    [
        node("RLike", S, literal("x", "string")),
        node("Like", S, literal("%abc%", "string")),
        node("Like", S, literal("a_c%", "string")),
        node("Like", S, S),
        node("GreaterThan", node("Length", S), literal(3)),
        node("EqualTo", literal(1), literal(1)),
        node("GreaterThan", cast(S, "integer"), literal(3)),
    ],
)
def test_what_costs_more_or_may_raise_is_an_operator(condition):
    assert not is_cheap(condition)


@pytest.mark.parametrize(
    ("condition", "raises"),
    [
        (node("RLike", S, literal("x", "string")), False),
        (node("RLike", S, S), True),
        (node("EqualTo", cast(node("ShiftRight", I, literal(3)), "long"), A), False),
        (node("BitwiseAnd", A, literal(255, "long")), False),
        (node("ShiftLeft", cast(S, "integer"), literal(1)), True),
        (node("Like", S, S), True),
        (node("Add", I, literal(1)), True),
        (node("Add", X, literal(1.0, "double")), False),
        (node("UnaryMinus", A), True),
        (node("Multiply", D, D), True),
        (node("Divide", X, X), True),
        (cast(S, "integer"), True),
        (cast(I, "long"), False),
        (cast(A, "integer"), True),
        (cast(A, "double"), False),
        (cast(A, "string"), False),
        (cast(I, "decimal(10,0)"), False),
        (cast(A, "decimal(10,0)"), True),
        (cast(D, "decimal(12,4)"), False),
        (cast(D, "decimal(12,5)"), True),
        (cast(D, "decimal(9,1)"), True),
        (cast(D, "double"), False),
        (node("GetArrayItem", A, literal(0)), True),
        (node("ElementAt", A, literal(0)), True),
        (node("GetJsonObject", S, literal("$.a", "string")), False),
        (node("RaiseError", S), True),
        (node("NeverHeardOf", S), True),
        (node("CaseWhen", A, node("Divide", X, X)), True),
    ],
)
def test_what_may_raise_is_what_is_not_known_never_to(condition, raises):
    assert may_raise(condition) is raises


def test_types_are_told_by_the_nodes_that_have_one():
    assert type_of(node("Add", I, literal(1))) == "integer"
    assert type_of(node("GetStructField", P, ordinal=0)) == "long"
    assert type_of(node("LessThan", A, A)) == "boolean"
    assert type_of(node("Unheard", A)) is None
