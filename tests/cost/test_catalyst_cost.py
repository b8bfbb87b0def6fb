"""Prices of expressions, added up over a tree; no Spark is needed for that."""

from dataclasses import dataclass, field

import pytest

from querymesh.cost.catalyst_cost import (
    UNKNOWN,
    CostTable,
    Price,
    estimate_us,
    like_kind,
    mean_length,
)
from querymesh.cost.catalyst_prices import PRICES

TABLE = CostTable(
    {
        "AttributeReference": Price(0.0),
        "Literal": Price(0.0),
        "NamedLambdaVariable": Price(0.0),
        "LambdaFunction": Price(0.0),
        "EqualTo": Price(0.01),
        "EqualTo text": Price(0.02),
        "Lower": Price(0.1, 0.001),
        "Contains": Price(0.2, 0.01),
        "Like": Price(5.0),
        "RLike": Price(0.5),
        "And": Price(0.001),
        "Cast": Price(0.003),
        "Cast text to number": Price(0.4),
        "GetStructField": Price(0.05),
        "ArrayExists": Price(0.3),
    }
)


@dataclass(frozen=True)
class Expression:
    """As much of an analysed expression as prices need."""

    kind: str
    fields: dict = field(default_factory=dict)
    children: tuple = ()


def column(name, kind="string"):
    return Expression("AttributeReference", {"name": name, "dataType": kind})


def literal(value, kind="string"):
    return Expression("Literal", {"value": value, "dataType": kind})


def node(kind, *children, **fields):
    return Expression(kind, fields, children)


def us(expression, **mean_bytes):
    return estimate_us(expression, mean_bytes, TABLE).us


def test_a_tree_costs_its_nodes_and_the_bytes_they_read():
    lowered = node("Lower", column("s"))
    assert us(node("EqualTo", column("n", "long"), literal("3", "long"))) == 0.01
    assert us(node("EqualTo", column("s"), literal("x"))) == 0.02
    assert us(node("EqualTo", lowered, literal("x")), s=50) == pytest.approx(0.15 + 0.02)
    both = node(
        "And", node("EqualTo", lowered, literal("x")), node("EqualTo", column("s"), lowered)
    )
    assert us(both, s=50) == pytest.approx(0.001 + 0.17 + 0.17)


def test_a_slower_machine_multiplies_everything():
    expression = node("Contains", column("s"), literal("x"))
    once = estimate_us(expression, {"s": 30}, TABLE).us
    twice = estimate_us(expression, {"s": 30}, CostTable(TABLE.prices, 2.0)).us
    assert (once, twice) == pytest.approx((0.5, 1.0))


def test_constants_cost_nothing():
    constant = node("Lower", literal("X" * 1_000))
    assert us(node("EqualTo", column("n", "long"), node("Cast", constant, dataType="long"))) == 0.01


def test_a_like_costs_what_catalyst_makes_of_it():
    assert us(node("Like", column("s"), literal("%x%")), s=10) == pytest.approx(0.3)
    assert us(node("Like", column("s"), literal("x"))) == 0.02
    assert us(node("Like", column("s"), literal("a%b_c"))) == 5.0
    assert us(node("ILike", column("s"), literal("%X%")), s=10) == pytest.approx(0.11 + 0.3)


@pytest.mark.parametrize("pattern", ["%a%b%", "a_c%", r"%\%%", "a%b"])
def test_a_like_that_catalyst_cannot_simplify_stays_one(pattern):
    assert like_kind(pattern) == "Like"


def test_a_regular_expression_costs_by_its_form_and_length():
    short, long = (
        us(node("RLike", column("s"), literal("(a|b)c")), s=length) for length in (10, 1_000)
    )
    assert 0.5 < short < long
    assert us(node("RLike", column("s"), literal("^abc")), s=1_000) == 0.5
    computed = estimate_us(node("RLike", column("s"), column("pattern")), {}, TABLE)
    assert computed.how_sure < 0.5


def test_a_kind_without_a_price_is_guessed_and_says_so():
    known = estimate_us(node("Lower", column("s")), {"s": 10}, TABLE)
    guess = estimate_us(node("NobodyKnows", column("s")), {"s": 10}, TABLE)
    assert guess.us == pytest.approx(UNKNOWN.us(10))
    assert guess.how_sure < 0.5 < known.how_sure


def test_a_loop_costs_its_body_for_each_element():
    body = node(
        "LambdaFunction", node("EqualTo", node("NamedLambdaVariable"), literal("3", "long"))
    )
    few, many = (us(node("ArrayExists", column("a", {}), body), a=size) for size in (8, 800))
    assert few == pytest.approx(0.3 + 0.01)
    assert many == pytest.approx(0.3 + 100 * 0.01)


def test_casts_cost_by_what_they_read_and_make():
    assert us(node("Cast", column("s"), dataType="integer")) == 0.4
    assert us(node("Cast", column("n", "long"), dataType="double")) == 0.003


def test_fields_of_structs_have_lengths_and_types_of_their_own():
    struct = {"type": "struct", "fields": [{"name": "y", "type": "string"}]}
    of_struct = node("GetStructField", column("st", struct), name="y", ordinal=0)
    assert mean_length(of_struct, {"st.y": 70, "st": 9}) == 70
    assert us(node("EqualTo", of_struct, literal("x"))) == pytest.approx(0.05 + 0.02)


def test_lengths_follow_the_functions():
    lengths = {"s": 50.0}
    assert mean_length(node("Concat", column("s"), literal("abc"), column("s")), lengths) == 103
    assert mean_length(node("Substring", column("s")), lengths) == 20
    assert mean_length(column("unknown"), lengths) == 20


def test_the_shipped_prices_are_prices():
    assert all(0 <= price.row_us < 20 and 0 <= price.byte_us < 1 for price in PRICES.values())
    assert PRICES["EqualTo"].row_us < PRICES["RLike"].row_us < PRICES["GetJsonObject"].row_us
