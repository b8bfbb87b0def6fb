"""What Eddies have learned, as people read it."""

import numpy as np
import pyarrow as pa

import querymesh as qm
from querymesh.fabric.routers.learned import learned
from querymesh.fabric.routers.make_eddy import make_eddy

QUERY = qm.query("SELECT * FROM S WHERE a > 1 AND b > 1 AND c > 1")
BOUND = QUERY.bind({"S": pa.schema([(name, pa.int64()) for name in "abck"])})
NAMES = {1: "one", 2: "two", 3: "three"}


def state_of(seen, pair=None, events=(), **learning):
    state = make_eddy("cbr", BOUND, qm.policies.Routing()).to_json()
    state["estimates"] = {
        "overall": {"1": 0.25, "2": 0.5},
        "cost_us": {"1": 2.0, "2": 0.125},
        "seen": {"1": seen, "2": seen},
        "pairs": {} if pair is None else {"2": pair},
        "by_place": {
            "2": {"seen": seen, "held": {"14": [0.75, seen], "12": [0.0625, seen], "4": [0.5, 0]}}
        },
    }
    state["learning"] |= {"events": list(events), "samples": {}, **learning}
    return state


KEPT = [4000, 2, "kept", ["k"], [[["k"], 0.31], [["a"], 0.02]], "1.5 a tuple, 2 without"]
NONE = [2000, 1, "none", [], [[["a"], 0.01]], ""]
PAIR = {
    "attributes": ["k"],
    "count": 2,
    "selectivity": [0.125, 0.9, 0.5],
    "gain": 0.31,
    "on_trial": False,
}

EXPECTED = """\
policy cbr, 2 routers

operators
  #  operator  tuples  passes (W)  µs a tuple  classifier              gain  passes by partition (S)
  1  one        4,000      25.0 %        2.00  – (being profiled)         –
  2  two        4,000      50.0 %       0.125  k                       0.31  0.12 0.90 0.50
  3  three          0           –           –  –                          –

operators that do otherwise after others
  operator  after   passes
  two       one      6.2 %

operators whose place is settled
  three: always last: far worse than all others

attributes that are not tried
  b: only grows or falls, as times and ids do

what was found
  tuples  router  operator  decision                  because
   2,000  1       one       no attribute says enough  gain a 0.01
   4,000  0       two       k kept                    gain k 0.31, a 0.02; 1.5 a tuple, 2 without

routing calls
  decided        calls   share  to
  by k             600  60.0 %  two 600
  no classifier    300  30.0 %  one 100, three 200
  profiling        100  10.0 %  one 100
  all            1,000  100.0 %
"""


def test_the_text_has_all_that_was_learned():
    states = {
        "0": state_of(
            3000,
            PAIR,
            [KEPT],
            samples={"1": {}},
            pruned={"3": "always last: far worse than all others"},
        ),
        "1": state_of(
            1000, None, [NONE], left_out={"b": "only grows or falls, as times and ids do"}
        ),
    }
    calls = {
        (1, "no classifier"): 100,
        (3, "no classifier"): 200,
        (2, "classifier k"): 600,
        (1, "profiling"): 100,
    }
    known = learned("cbr", NAMES, make_eddy("cbr", BOUND, qm.policies.Routing()), states, calls)
    assert squeezed(known.explain()) == squeezed(EXPECTED)
    assert known.attributes == {"two": ("k",)}
    np.testing.assert_allclose(known.estimates.pairs[2].selectivity, [0.125, 0.9, 0.5])


def test_an_eddy_has_no_classifiers_to_show():
    eddy = make_eddy("eddy", BOUND, qm.policies.Routing())
    text = learned("eddy", NAMES, eddy, {}, {}).explain()
    assert "classifier" not in text
    assert "three" in text


def squeezed(text):
    return [" ".join(line.split()) for line in text.strip().splitlines()]
