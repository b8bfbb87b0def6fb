"""Costs, transports and brute force for tests of where operators run."""

from itertools import permutations, product

import numpy as np
from hypothesis import strategies as st

from profiles import profile_of, profiles_with_kinds
from querymesh.mesh.stages import Stage
from querymesh.optimize.placement.costs import Costs, Placement, in_python, parts_of, staged_us

CATALYST, PYTHON, BOTH = "catalyst", "python", "both"


def transport_by_columns(columns_of, base_us=0.7, column_us=0.3):
    """A crossing costs `base_us`, and `column_us` for each column that an operator or the
    classifier reads."""

    def transport_us(operators, columns):
        read = set(columns).union(*(columns_of[k - 1] for k in operators))
        return base_us + column_us * len(read)

    return transport_us


def costs_of(where, catalyst_us, python_us, transport_us=None, doubt=1.0) -> Costs:
    """Costs of operators that can run where `where` says; `python_us` may be (drop, pass)."""
    catalyst_us = np.array(catalyst_us, dtype=np.float64)
    drop_us, pass_us = np.broadcast_to(np.array(python_us, dtype=np.float64), (2, len(where)))
    native = np.array([place != PYTHON for place in where])
    python = np.array([place != CATALYST for place in where])
    columns = [{f"c{k}"} for k in range(len(where))]
    return Costs(
        np.where(native, catalyst_us, np.inf),
        np.where(python, drop_us, np.inf),
        np.where(python, pass_us, np.inf),
        transport_us or transport_by_columns(columns),
        doubt,
    )


@st.composite
def random_costs(draw, operators) -> Costs:
    where = draw(
        st.lists(st.sampled_from([CATALYST, PYTHON, BOTH, BOTH]), min_size=operators,
                 max_size=operators)
    )  # fmt: skip
    numbers = st.lists(
        st.sampled_from([0.0, 0.05, 0.5, 3.0, 20.0]), min_size=operators, max_size=operators
    )
    columns = draw(
        st.lists(
            st.sets(st.sampled_from("abc"), min_size=1), min_size=operators, max_size=operators
        )
    )
    transport = transport_by_columns(columns, draw(st.sampled_from([0.0, 0.7, 5.0])))
    python_us = np.array([draw(numbers), draw(numbers)])
    return costs_of(where, draw(numbers), python_us, transport)


@st.composite
def placed_cases(draw, most_operators=4, most_rows=12):
    """A profile of filters with costs: any outcomes, any precedence, any engines."""
    operators = draw(st.integers(1, most_operators))
    rows = draw(st.integers(1, most_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    outcomes = rng.binomial(1, rng.choice([0.05, 0.5, 0.95], operators), (rows, operators))
    after = []
    for j in range(operators):
        before = draw(st.sets(st.integers(1, j), max_size=2)) if j and draw(st.booleans()) else ()
        after.append(frozenset(before).union(*(after[k - 1] for k in before)))
    return profile_of(outcomes, after=after), draw(random_costs(operators))


def allowed_placements(costs: Costs, after):
    """Every placement that the engines and precedence allow."""
    for placement in product(Stage, repeat=costs.operators):
        if fits(placement, costs, after):
            yield placement


def fits(placement: Placement, costs: Costs, after) -> bool:
    able = all(
        costs.in_python[j] if stage == Stage.PYTHON else costs.in_catalyst[j]
        for j, stage in enumerate(placement)
    )
    return able and all(
        placement[k - 1] <= stage
        for stage, before in zip(placement, after, strict=True)
        for k in before
    )


def cheapest_by_brute_force(profile, costs, crossing_us=None) -> float:
    """The mean cost of the best of all orders of all placements; infinite if there is none."""
    crossing_us = crossing_us or costs.crossing_us
    best = np.inf
    for placement in allowed_placements(costs, profile.after):
        crossing = crossing_us(in_python(placement))
        for route in permutations(range(1, costs.operators + 1)):
            stages = [placement[k - 1] for k in route]
            early = all(profile.after[k - 1] <= set(route[:i]) for i, k in enumerate(route))
            if stages == sorted(stages) and early:
                parts = parts_of(route, placement)
                best = min(best, float(staged_us(profile, costs, parts, crossing).mean()))
    return best


@st.composite
def cases_with_kinds(draw, most_operators=4):
    """Tuples of up to four kinds, so that a mesh may pay, with operators of any engine."""
    profile = draw(profiles_with_kinds(most_operators))
    return profile, draw(random_costs(profile.operators))
