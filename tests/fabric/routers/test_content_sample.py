import math

import numpy as np
import pyarrow as pa
import pytest

from querymesh.classify.partitions import Partitions
from querymesh.fabric.routers.content_sample import Sample, left_out


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (pa.array(range(100)), "only grows"),
        (pa.array(range(100, 0, -1)), "only grows or falls"),
        (pa.array([i * 0.5 for i in range(100)]), "only grows"),
        (pa.array(range(100)).cast(pa.timestamp("s")), "only grows"),
        (pa.array([i // 3 for i in range(100)]).cast(pa.timestamp("s")), "only grows"),
        (pa.array([i % 5 for i in range(100)]).cast(pa.timestamp("s")), None),
        (pa.array([None if i % 9 == 0 else i for i in range(100)]), "only grows"),
        (pa.array(np.random.default_rng(0).permutation(100)), "too many values: 100 in 100"),
        (pa.array([f"user {i * 7 % 100}" for i in range(100)]), "too many values"),
        (pa.array([f"user {i * 7 % 100}" for i in range(100)]).dictionary_encode(), "too many"),
        (pa.array(["lorem ipsum " * 10] * 100), "long text, 120 bytes"),
        (pa.array(["lorem ipsum " * 10] * 100).dictionary_encode(), "long text, 120 bytes"),
        (pa.array([b"x" * 200] * 100, pa.large_binary()), "long text, 200 bytes"),
        (pa.array([[1]] * 100), "cannot be partitioned"),
        (pa.nulls(100), "cannot be partitioned"),
        (pa.array(np.random.default_rng(0).random(100)), None),
        (pa.array([i // 10 for i in range(100)]), None),
        (pa.array([5] * 100), None),
        (pa.array([True, False] * 50), None),
        (pa.array(["a", "b"] * 50), None),
        (pa.array(["a", "b"] * 50).dictionary_encode(), None),
        (pa.array([None] * 100, pa.string()), None),
        (pa.array([1.5, 2.5]), None),
        (pa.array([], pa.int64()), None),
    ],
    ids=lambda each: None if each is None or isinstance(each, str) else str(each.type),
)
def test_attributes_that_cannot_help_are_left_out_with_the_reason(values, reason):
    found = left_out("x", values)
    assert (found is None) if reason is None else (found is not None and reason in found)


def test_two_samples_of_the_same_values_are_one_whatever_their_dictionaries():
    sample = Sample()
    sample.add(pa.record_batch({"x": pa.array(["a", "b"]).dictionary_encode()}), np.array([0.0, 1]))
    sample.add(pa.record_batch({"x": pa.array(["b", "a"]).dictionary_encode()}), np.array([1.0, 0]))
    again = Sample.from_json(sample.to_json())
    for each in (sample, again):
        assert each.rows == 4
        assert each.column("x").to_pylist() == ["a", "b", "b", "a"]
        assert each.gain(("x",), 24, Partitions()) == pytest.approx(1.0)
    assert Sample.from_json(Sample().to_json()).rows == 0


def test_in_and_out_count_the_sample_by_partition():
    sample = Sample()
    rows = pa.record_batch({"x": pa.array([0.0, 10.0, None, math.nan, 9.0])})
    sample.add(rows, np.array([1.0, 0.0, 3.0, 1.0, 1.0]))
    arrived, passed = sample.matrices(("x",), 4, Partitions({"x": (0.0, 10.0)}))
    assert arrived.tolist() == [1, 0, 0, 3, 1]
    assert passed.tolist() == [1, 0, 0, 2, 3]


@pytest.mark.parametrize("values", [2, 5, 100])
def test_evidence_of_what_tells_nothing_is_that_of_chance_however_many_values(values):
    rng = np.random.default_rng(0)
    found = []
    for _ in range(300):
        sample = Sample()
        columns = {"x": rng.integers(0, values, 150)}
        sample.add(pa.record_batch(columns), (rng.random(150) < 0.4).astype(float))
        found.append(sample.evidence(("x",), 24, Partitions()))
    assert np.mean(found) == pytest.approx(0, abs=0.2)
    assert np.std(found) == pytest.approx(1, abs=0.2)


def test_what_a_set_gains_by_chance_alone_is_taken_off():
    rng = np.random.default_rng(0)
    gains = {True: [], False: []}
    for _ in range(100):
        sample = Sample()
        columns = {name: rng.integers(0, 5, 150) for name in "xy"}
        sample.add(pa.record_batch(columns), (rng.random(150) < 0.5).astype(float))
        fair = dict(sample.candidates("xy", 24, Partitions(), sets=True))
        gains[True].append(fair["x", "y"])
        gains[False].append(sample.gain(("x", "y"), 24, Partitions()))
    assert np.mean(gains[False]) > 0.02
    assert np.mean(gains[True]) < 0.01
