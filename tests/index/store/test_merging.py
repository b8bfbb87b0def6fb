import math

from hypothesis import given
from hypothesis import strategies as st

from querymesh.index.store.merging import FAN, FULL_PER_WINDOW, TINY_ROWS, to_merge

SIZES = st.lists(st.integers(1, 5) | st.integers(1, 3000), min_size=1, max_size=200)


def run(steps, window=None):
    """Insert (rows, first, last), expiring and merging after each; the most partitions there ever
    were, how often a row was moved at most, and the final partitions."""
    held = []
    most = 0
    for size, first, last in steps:
        held.append((size, first, last, 0))
        if window is not None:
            held = [part for part in held if part[2] >= last - window]
        sizes, firsts, lasts, _ = zip(*held, strict=True)
        for begin, end in reversed(to_merge(sizes, firsts, lasts, window)):
            old = held[begin:end]
            held[begin:end] = [
                (
                    sum(part[0] for part in old),
                    min(part[1] for part in old),
                    max(part[2] for part in old),
                    max(part[3] for part in old) + 1,
                )
            ]
        most = max(most, len(held))
    return most, max(part[3] for part in held), held


def steadily(sizes, step=1):
    return [(size, n * step, n * step + step - 1) for n, size in enumerate(sizes)]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 50), st.integers(0, 50)), max_size=20))
def test_ranges_are_apart_and_of_two_or_more(parts):
    sizes, firsts, lengths = zip(*parts, strict=True) if parts else ((), (), ())
    lasts = [first + length for first, length in zip(firsts, lengths, strict=True)]
    end = 0
    for begin, stop in to_merge(sizes, firsts, lasts, 40):
        assert end <= begin < stop - 1
        assert stop <= len(sizes)
        end = stop


@given(SIZES)
def test_without_a_window_there_are_few_partitions_and_a_row_is_seldom_moved(sizes):
    most, moved, _ = run(steadily(sizes))
    growths = math.log(sum(sizes), FAN / (FAN - 1))
    assert most <= growths + 1
    assert moved <= growths + 1


def test_of_equal_inserts_a_row_is_moved_log_4_times():
    most, moved, _ = run(steadily([10] * 4096))
    assert moved <= math.log(4096, FAN)
    assert most <= (FAN - 1) * (math.log(4096, FAN) + 1)


@given(st.lists(st.integers(1, 3) | st.integers(500, 3000), min_size=1, max_size=150))
def test_a_merged_partition_is_short_or_tiny(sizes):
    window = 80
    steps = steadily(sizes)
    _, _, held = run(steps, window)
    inserted = {(first, last) for _, first, last in steps}
    for rows, first, last, _ in held:
        whole = (last - first) * FULL_PER_WINDOW <= window
        assert (first, last) in inserted or whole or rows < TINY_ROWS


def test_a_window_of_many_batches_is_held_in_few_partitions():
    for batches_per_window in (5, 20, 37, 100, 1000):
        sizes = [2000] * (3 * batches_per_window)
        most, moved, _ = run(steadily(sizes, step=100), window=100 * batches_per_window)
        assert most <= 2 * FULL_PER_WINDOW + (FAN - 1) * (math.log(batches_per_window, FAN) + 1)
        assert moved <= math.log(batches_per_window, FAN) + 2


@given(
    batches_per_window=st.integers(5, 200),
    disorder=st.floats(0, 1),
    data=st.data(),
)
def test_a_window_of_batches_in_disorder_is_held_in_few_partitions(
    batches_per_window, disorder, data
):
    window = 100 * batches_per_window
    furthest = int(disorder * window)
    back = data.draw(st.lists(st.integers(0, furthest), min_size=1, max_size=20))
    steps = [
        (TINY_ROWS, 100 * n - back[n % len(back)], 100 * n) for n in range(3 * batches_per_window)
    ]
    most, moved, held = run(steps, window)
    assert most <= 3 * FULL_PER_WINDOW + (FAN - 1) * (math.log(batches_per_window, FAN) + 1)
    assert moved <= math.log(batches_per_window, FAN) + 5
    assert sum(part[0] for part in held) <= 2 * TINY_ROWS * (batches_per_window + 1)


def test_partitions_are_merged_where_each_batch_spans_more_than_a_merged_one_may():
    for behind in (125, 130, 500, 1000):
        most, moved, held = run([(5000, n - behind, n) for n in range(3000)], 1000)
        assert most <= 4 * FULL_PER_WINDOW
        assert moved <= 4
        for _, first, last, _ in held:
            assert (last - first - behind) * FULL_PER_WINDOW <= 1000


def test_tiny_partitions_are_merged_however_long_the_result():
    _, _, held = run(steadily([1] * 64, step=1000), window=10**5)
    assert len(held) < 8
