import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querymesh.index.kernels import travel as t
from querymesh.index.probe import program as programs
from querymesh.index.probe.program import Arriving, Program, Step
from querymesh.index.probe.program_numpy import run_plainly
from querymesh.index.store.configuration import Configuration
from querymesh.index.store.index_plan import BitPlan, HashPlan
from querymesh.index.store.partition import Partition
from querymesh.index.store.request import Asked
from querymesh.index.store.stem import Stem

KEYS, ORDERS, RELATIONS = 2, 1, 3
SMALL = st.integers(-1, 1)
TIMES = st.integers(0, 9)


def ints(values):
    return np.array(list(values), np.int64)


@st.composite
def partitions(draw):
    rows = draw(st.integers(0, 6))

    def column(values):
        return ints(draw(st.lists(values, min_size=rows, max_size=rows)))

    events = pa.array(column(TIMES), pa.timestamp("us"))
    serials = column(st.integers(0, 9)) if draw(st.booleans()) else None
    part = Partition(
        pa.record_batch({"at": events}),
        [column(SMALL) for _ in range(KEYS)],
        [column(SMALL) for _ in range(ORDERS)],
        column(TIMES),
        serials,
    )
    plans = st.sampled_from([
        HashPlan(), HashPlan(((0,),)), HashPlan((), ()), HashPlan(None, (1,)),
        BitPlan(Configuration((1, 1, 1), KEYS)), BitPlan(Configuration((2, 0, 0), KEYS)),
    ])  # fmt: skip
    return draw(plans).lay_out(part)


@st.composite
def stems(draw):
    stem = Stem()
    for part in draw(st.lists(partitions(), max_size=4)):
        stem.insert(part)
    return stem


@st.composite
def steps(draw, source, relation, joined):
    holders = st.sampled_from(sorted(joined))
    pattern = tuple(sorted(draw(st.sets(st.integers(0, KEYS - 1)))))
    held = tuple((draw(holders), draw(st.integers(0, KEYS - 1))) for _ in pattern)
    ops = draw(st.lists(st.sampled_from(["<", "<=", ">", ">="]), max_size=2))
    compared = tuple((draw(holders), 0) for _ in ops)
    window = draw(st.sampled_from([t.NO_WINDOW, t.RANGE_WINDOW, t.ROWS_WINDOW]))
    asked = Asked(pattern, tuple((op, 0) for op in ops))
    return Step(source, relation, asked, held, compared, window, draw(st.integers(0, 6)))


@st.composite
def automata(draw):
    """A few routes over all relations, or over a part of them, as chains of states."""
    made, state_step, state_next = [], [], []
    levels = 1
    for _ in range(draw(st.integers(1, 3))):
        source, *others = draw(st.permutations(range(RELATIONS)))
        route = others[: draw(st.integers(1, RELATIONS - 1))]
        levels, joined = max(levels, len(route)), {source}
        for place, relation in enumerate(route):
            made.append(draw(steps(source, relation, frozenset(joined))))
            state_step.append(len(made) - 1)
            state_next.append(len(state_next) + 1 if place + 1 < len(route) else -1)
            joined.add(relation)
    timed = draw(st.sampled_from([{}, {1: "at"}, {1: "at", 2: "at"}]))
    return Program(
        RELATIONS, tuple(made), tuple(state_step), tuple(state_next), levels, KEYS, ORDERS, timed
    )


@st.composite
def arrivals(draw, relation):
    rows = draw(st.integers(0, 8))

    def column(values):
        return ints(draw(st.lists(values, min_size=rows, max_size=rows)))

    return Arriving(
        relation,
        [column(SMALL) for _ in range(KEYS)],
        [column(SMALL) for _ in range(ORDERS)],
        column(TIMES),
        column(st.integers(0, 9)),
        {other: column(TIMES) for other in range(RELATIONS)},
        draw(st.none() | st.integers(0, 9)),
        draw(st.sampled_from([0, 5])),
    )


@st.composite
def several_arrivals(draw):
    """Tuples of one relation or of several, in any order of them."""
    chosen = draw(st.lists(st.sampled_from(range(RELATIONS)), min_size=1, unique=True))
    return [draw(arrivals(relation)) for relation in chosen]


def begins_of(program, source):
    """The states in which a route of a relation's tuples begins."""
    ends = [-1, *(n for n, follows in enumerate(program.state_next) if follows < 0)]
    begins = [end + 1 for end in ends[:-1]]
    return [n for n in begins if program.steps[program.state_step[n]].source == source]


@settings(max_examples=400, deadline=None)
@given(
    automata(), st.lists(stems(), min_size=RELATIONS, max_size=RELATIONS), several_arrivals(),
    st.sampled_from([1, 2, 3, 256]), st.sampled_from([1, 2, 7, 1000]), st.data(),
)  # fmt: skip
def test_a_program_gives_what_it_gives_in_numpy(program, states, arriving, block, most, data):
    starts = []
    for each in arriving:
        begins = st.sampled_from([-1, *begins_of(program, each.relation)])
        rows = len(each.times)
        starts += data.draw(st.lists(begins, min_size=rows, max_size=rows))
    starts = ints(starts)
    counts, plain = program.no_counts(), program.no_counts()
    expected = sorted(run_plainly(program, states, arriving, starts, plain))
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs, "_BLOCK", block)
        for out in program.run(states, arriving, starts, counts, most):
            assert 0 < len(out.rows) <= most
            found += zip(
                out.rows.tolist(), out.states.tolist(), out.newest.tolist(), out.until.tolist(),
                *(ids.tolist() for ids in out.joined), strict=True,
            )  # fmt: skip
    assert sorted(found) == expected
    for one, other in ((counts.evaluated, plain.evaluated), (counts.passed, plain.passed)):
        assert one.tolist() == other.tolist()
    assert counts.looked.tolist() == plain.looked.tolist()
    assert (counts.seconds >= 0).all()
    for relation, stem in enumerate(states):
        of = [
            n
            for n, step in enumerate(program.state_step)
            if program.steps[step].relation == relation
        ]
        assert stem.probes == sum(int(plain.evaluated[n]) for n in of)
        assert stem.comparisons == sum(int(plain.looked[n]) for n in of)


def test_an_index_is_built_when_a_probe_comes_to_its_partition():
    part = Partition(pa.record_batch({"x": [1, 2]}), [ints([1, 2])], [], ints([5, 5]))
    stem = Stem()
    stem.insert(part)
    program = Program(
        2, (Step(0, 1, Asked((0,)), ((0, 0),), (), t.RANGE_WINDOW, 3),), (0,), (-1,), 1, 1, 0
    )

    def joined(time):
        arriving = Arriving(0, [ints([2])], [], ints([time]), ints([9]), {}, 3)
        counts = program.no_counts()
        found = program.run([Stem(), stem], [arriving], ints([0]), counts, 9)
        return [out.joined[1].tolist() for out in found]

    assert joined(20) == []
    assert part.index_bytes == 0
    assert joined(6) == [[1]]
    assert part.index_bytes > 0
