"""Profiles made by hand, for tests that need no data."""

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from querymesh.stats.profile import Profile


def profile_of(outcomes, cost_us=None, after=None, sample=None, serves=()) -> Profile:
    outcomes = np.asarray(outcomes, dtype=np.float64)
    rows, operators = outcomes.shape
    return Profile(
        sample if sample is not None else pa.table({"k": pa.array(np.zeros(rows, np.int64))}),
        tuple(f"p{j + 1}" for j in range(operators)),
        tuple(after or [frozenset()] * operators),
        outcomes,
        *_both(cost_us if cost_us is not None else np.ones(operators)),
        serves,
    )


def _both(cost_us):
    """The same cost for either outcome, or (on dropped, on passed) as given."""
    costs = np.asarray(cost_us, dtype=np.float64)
    return costs if costs.ndim == 2 else (costs, costs)


def three_classes(rows=1500, seed=0, opposite=True) -> Profile:
    """Class a is dropped by p1, b by p2, c by p3; without `opposite` classes do not matter."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, rows)
    passes = np.where(np.eye(3), 0.1, 0.9) if opposite else np.full((3, 3), 0.5)
    outcomes = (rng.random((rows, 3)) < passes[kind]).astype(float)
    sample = pa.table(
        {
            "id": np.arange(rows),
            "kind": pa.array(np.array(["a", "b", "c"])[kind]),
            "noise": rng.normal(size=rows),
        }
    )
    return profile_of(outcomes, [10.0, 11.0, 12.0], sample=sample)


@st.composite
def profiles_with_kinds(draw, most_operators=4, most_rows=400) -> Profile:
    """Tuples of up to four kinds, each with pass rates of its own, so that a mesh may pay.

    The kind stands in the column "kind"; "noise" tells nothing.
    """
    operators = draw(st.sampled_from(range(2, most_operators + 1)))
    kinds = draw(st.sampled_from([2, 3, 4]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = rng.integers(0, kinds, draw(st.sampled_from([60, 200, most_rows])))
    rates = rng.choice([0.05, 0.5, 0.95], (kinds, operators))
    outcomes = rng.binomial(1, rates[kind])
    sample = pa.table(
        {"kind": pa.array(np.array(list("abcd"))[kind]), "noise": rng.normal(size=len(kind))}
    )
    return profile_of(outcomes, rng.uniform(5, 20, operators), sample=sample)


@st.composite
def random_profiles(draw, most_operators=4, most_rows=12) -> Profile:
    """Any outcomes, costs and precedence. The only column is constant: no mesh is ever found."""
    operators = draw(st.integers(1, most_operators))
    rows = draw(st.integers(1, most_rows))
    outcomes = draw(hnp.arrays(np.int64, (rows, operators), elements=st.integers(0, 3)))
    costs = st.lists(st.floats(0.1, 50), min_size=operators, max_size=operators)
    drop, keep = np.array(draw(costs)), np.array(draw(costs))
    keep = np.where((outcomes <= 1).all(axis=0), keep, drop)  # a look-up has one cost
    cost = np.array([drop, keep])
    after = []
    for j in range(operators):
        before = draw(st.sets(st.integers(1, j))) if j else set()
        closed = frozenset(before).union(*(after[k - 1] for k in before))
        after.append(closed)
    return profile_of(outcomes, cost, after)
