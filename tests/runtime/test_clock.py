"""The clock of a streaming join, shard by shard and batch by batch, without Spark."""

from hypothesis import given
from hypothesis import strategies as st

from querymesh.runtime.clock import NEVER, Clock

S = 1_000_000


def batch(clocks, now, rows, delay=0, idle=8 * S):
    """One batch: each shard starts from what all know; `rows` are (shard, stream, time)."""
    merged = Clock.merged([clock.to_json() for clock in clocks])
    idles = set()
    after = []
    for shard in range(len(clocks)):
        clock = Clock.merged([merged.to_json()])
        idles.add(tuple(clock.turn(["a", "b"], delay, idle)))
        for place, stream, time in rows:
            if place == shard:
                clock.saw(stream, time, now)
                clock.passed(now)
        after.append(clock)
    assert len({clock.horizon for clock in after}) == 1
    assert len(idles) == 1
    return after, after[0].horizon, list(idles.pop())


def test_the_horizon_is_the_least_of_the_newest_times_less_the_delay():
    clocks = [Clock(), Clock()]
    clocks, horizon, _ = batch(clocks, 1 * S, [(0, "a", 50 * S)], 5 * S)
    assert horizon == NEVER
    clocks, horizon, _ = batch(clocks, 2 * S, [(1, "b", 30 * S)], 5 * S)
    assert horizon == NEVER, "nothing was heard of b before this batch"
    clocks, horizon, _ = batch(clocks, 3 * S, [(0, "a", 40 * S)], 5 * S)
    assert horizon == 25 * S
    clocks, horizon, _ = batch(clocks, 4 * S, [(0, "b", 90 * S)], 5 * S)
    clocks, horizon, _ = batch(clocks, 5 * S, [(1, "b", 91 * S)], 5 * S)
    assert horizon == 45 * S


def test_a_stream_silent_for_long_enough_while_another_speaks_is_idle():
    clocks = [Clock()]
    clocks, _, _ = batch(clocks, 1 * S, [(0, "a", 1 * S), (0, "b", 1 * S)])
    idles = []
    for second in range(2, 16):
        clocks, horizon, idle = batch(clocks, second * S, [(0, "a", second * S)])
        idles.append(idle)
    assert idles[0] == []
    assert idles[-1] == ["b"]
    assert horizon == 14 * S
    clocks, _, _ = batch(clocks, 16 * S, [(0, "b", 15 * S)])
    clocks, _, idle = batch(clocks, 17 * S, [(0, "a", 17 * S)])
    assert idle == [], "it has spoken again"


def test_a_query_that_was_down_finds_nobody_idle():
    clocks = [Clock()]
    clocks, _, _ = batch(clocks, 1 * S, [(0, "a", 1 * S), (0, "b", 1 * S)])
    clocks, _, idle = batch(clocks, 100_000 * S, [(0, "a", 60 * S)])
    assert idle == []
    clocks, horizon, idle = batch(clocks, 100_001 * S, [(0, "a", 120 * S)])
    assert idle == []
    assert horizon == 1 * S


def test_idle_at_once_is_whoever_missed_the_last_batch():
    clocks = [Clock()]
    clocks, _, _ = batch(clocks, 1 * S, [(0, "a", 1 * S), (0, "b", 1 * S)], idle=0)
    clocks, _, idle = batch(clocks, 2 * S, [(0, "a", 9 * S)], idle=0)
    assert idle == []
    clocks, horizon, idle = batch(clocks, 3 * S, [(0, "a", 10 * S)], idle=0)
    assert (horizon, idle) == (9 * S, ["b"])


@given(
    st.lists(
        st.tuples(
            st.integers(1, 9),
            st.lists(
                st.tuples(st.integers(0, 2), st.sampled_from("ab"), st.integers(0, 50)), max_size=4
            ),
        ),
        max_size=12,
    ),
    st.integers(0, 20),
    st.integers(0, 20),
)
def test_shards_agree_whatever_rows_they_see_and_the_horizon_never_goes_back(steps, delay, idle):
    clocks = [Clock() for _ in range(3)]
    alone = [Clock()]
    now, last = 0, NEVER
    for gap, rows in steps:
        now += gap
        clocks, horizon, idles = batch(clocks, now, rows, delay, idle)
        alone, same, also = batch(alone, now, [(0, s, t) for _, s, t in rows], delay, idle)
        assert (horizon, idles) == (same, also), "one shard would say the same"
        assert horizon >= last
        last = horizon
