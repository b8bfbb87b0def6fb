"""Search problems made by hand, for tests."""

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from profiles import profile_of
from querymesh.classify.attributes import choose_attributes, one_piece
from querymesh.classify.condense import TrainingSet
from querymesh.cost.route_time import Overheads
from querymesh.optimize.search.problem import Problem

OVERHEADS = Overheads(node_us=0.005, ruster_us=20.0, window=10_000)


def training_set(profile, member) -> TrainingSet:
    """The rows of each member number as one training tuple; attributes must tell them apart."""
    member = np.asarray(member, dtype=np.int64)
    attributes, left_out = choose_attributes(profile.sample)
    columns = {a.name: one_piece(profile.sample.column(a.name)) for a in attributes}
    codes = [a.codes(columns[a.name]) for a in attributes]
    return TrainingSet(profile, attributes, left_out, codes, columns, member, int(member.max()) + 1)


STOCKS = ("Apple", "Amazon", "Google", "Ford")


def stock_problem(rows=400, seed=0, **kwargs) -> Problem:
    """Examples 1 to 5: op 1 lets IT stocks through and drops Ford, op 3 does the opposite.

    Amazon and Google are alike; Apple differs a little, so that its best order alone is another,
    but not by as much as a test costs.
    """
    rng = np.random.default_rng(seed)
    member = np.repeat(np.arange(4), rows // 4)
    pass_rates = np.array([[0.9, 0.45, 0.5], [0.9, 0.6, 0.1], [0.9, 0.6, 0.1], [0.1, 0.5, 0.9]])
    outcomes = (rng.random((len(member), 3)) < pass_rates[member]).astype(float)
    sample = pa.table({"symbol": pa.array(np.array(STOCKS)[member])})
    profile = profile_of(outcomes, [10.0, 10.0, 10.0], sample=sample)
    overheads = Overheads(node_us=0.6, ruster_us=20.0, window=10_000)
    return Problem(training_set(profile, member), overheads, **kwargs)


@st.composite
def random_problems(draw, most_tuples=6, most_operators=4, **kwargs) -> Problem:
    """Training tuples on a small grid of a number and a category, NULL among both."""
    tuples = draw(st.integers(1, most_tuples))
    operators = draw(st.integers(1, most_operators))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = tuples * draw(st.integers(2, 40))
    member = np.arange(rows) % tuples
    fan_out = draw(st.booleans())
    outcomes = rng.binomial(2 if fan_out else 1, rng.uniform(0, 1, (tuples, operators))[member])
    number = [None if m % 3 == 2 else float(m % 3) + rng.integers(0, 2) / 4 for m in member]
    category = [None if m // 3 == 2 else "ab"[m // 3 % 2] for m in member]
    sample = pa.table({"n": pa.array(number, pa.float64()), "c": pa.array(category, pa.string())})
    after = []
    for j in range(operators):
        before = draw(st.sets(st.integers(1, j), max_size=1)) if j else set()
        after.append(frozenset(before).union(*(after[k - 1] for k in before)))
    profile = profile_of(outcomes, rng.uniform(1, 20, operators), after, sample)
    overheads = Overheads(
        draw(st.sampled_from([0.0, 0.05, 1.0])), draw(st.sampled_from([0.0, 100.0])), 1000
    )
    return Problem(training_set(profile, member), overheads, **kwargs)
