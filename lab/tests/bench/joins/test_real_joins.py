import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.data import intel_lab
from querymesh_lab.bench.data.real_folder import DATA, data_folder, holds
from querymesh_lab.bench.data.real_streams import (
    PAIRS,
    lab_readings,
    quarters,
    ticks,
)
from querymesh_lab.bench.joins import real_joins
from querymesh_lab.bench.joins.real_joins import JoinQuestion, duckdb_ids, in_order_of_ids
from querymesh_lab.bench.measure import RivalsDisagreeError

folder = data_folder()
needs_lab = pytest.mark.skipif(not holds(folder, intel_lab.FILES), reason="no Lab data here")
needs_ticks = pytest.mark.skipif(
    not holds(folder, tuple(PAIRS.values())),
    reason="no currency ticks here",
)


def stream(times_s, keys):
    return pa.table({
        "id": np.arange(len(times_s)),
        "ts": pa.array(np.array(sorted(times_s), np.int64) * 500_000, pa.timestamp("us", "UTC")),
        "k": np.array(keys, np.int64),
    })  # fmt: skip


rows = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 1)), max_size=12)


@settings(max_examples=40, deadline=None)
@given(rows, rows, rows, st.integers(1, 9))
def test_slots_find_exactly_what_the_definition_of_a_window_says(a, b, c, window_s):
    streams = {
        name: stream([t for t, _ in given], [k for _, k in given])
        for name, given in {"a": a, "b": b, "c": c}.items()
    }
    question = JoinQuestion("small", streams, window_s, ("a.k = b.k", "a.k = c.k"))
    connection = duckdb.connect()
    for name, table in streams.items():
        connection.register(name, table)
    newest = "greatest(epoch_us(a.ts), epoch_us(b.ts), epoch_us(c.ts))"
    meaning = " AND ".join(f"{newest} - epoch_us({n}.ts) <= {window_s * 1_000_000}" for n in "abc")
    plain = f"SELECT a.id, b.id, c.id FROM a, b, c WHERE a.k = b.k AND a.k = c.k AND {meaning}"
    wanted = np.array(connection.execute(plain).fetchall(), np.int64).reshape(-1, 3)
    assert np.array_equal(duckdb_ids(question), in_order_of_ids(wanted))


def test_a_wrong_answer_is_not_timed():
    table = stream(range(50), [0] * 50)
    question = JoinQuestion("small", {"a": table, "b": table}, 2, ("a.k = b.k",))
    expected = duckdb_ids(question)[1:]
    answers = real_joins._Answers(question, question.join, expected)
    meshes = real_joins.learned(question, question.join)["single"]
    with pytest.raises(RivalsDisagreeError, match="not DuckDB's"):
        answers.run("single", meshes)


def test_absent_data_are_passed_over_and_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv(DATA, str(tmp_path))
    said = []
    assert real_joins.run(Bench(True, said.append)) == []
    assert len(said) == 2
    assert all(DATA in line for line in said)


@needs_lab
def test_the_quarters_of_the_lab_hold_every_reading_once():
    readings = lab_readings(folder, 3000)
    parts = quarters(readings)
    assert sum(part.num_rows for part in parts.values()) == 3000
    assert min(part.num_rows for part in parts.values()) > 300
    motes = [set(part["mote"].to_pylist()) for part in parts.values()]
    assert sum(map(len, motes)) == len(set().union(*motes))


@needs_ticks
def test_ticks_are_in_order_and_some_move_each_way():
    table = ticks(folder, "eurusd", 3000)
    assert set(table["move"].to_pylist()) == {-1, 0, 1}
    times = np.asarray(table["ts"].cast(pa.int64()))
    assert (np.diff(times) >= 0).all()
    moved = np.asarray(table["move"]) != 0
    assert (np.asarray(table["jump"])[moved] > 0).all()


@needs_lab
@needs_ticks
def test_every_question_is_answered_as_duckdb_answers_it():
    found = real_joins.run(Bench(True))
    counts = {f.claim.partition(":")[0]: f.value for f in found if "results" in f.claim}
    assert set(counts) == {"lab, two halves", "lab, four quarters", "ticks, two currencies"}
    assert min(counts.values()) > 100
