from collections import Counter

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from querymesh.mesh.mesh import written_mesh
from querymesh_lab.bench.joins.core_run import as_batches, by_meshes, run_core
from querymesh_lab.papers.qm.rivals import QM, SP
from querymesh_lab.papers.qm.ten_way import PARTITIONS
from querymesh_lab.papers.qm.windows.stream_rivals import (
    StreamSubject,
    on_meshes,
    probes_a_tuple,
    race_core,
    train_stream_rivals,
)
from querymesh_lab.papers.qm.windows.ten_streams import HINTS, MEAN_GAP_US, TenStreams

SMALL = TenStreams("poisson", in_window=400, streams=4)


def test_the_tuples_of_a_stream_arrive_in_order_at_about_the_papers_rate():
    tables = TenStreams("poisson", in_window=4000).tables(2)
    assert list(tables) == [f"S{number}" for number in range(10)]
    rows = [table.num_rows for table in tables.values()]
    assert sum(rows) == pytest.approx(10 * 2 * 4000, rel=0.03)
    assert min(rows) == pytest.approx(0.8 * 8000, rel=0.06)
    times = np.asarray(tables["S0"]["ts"].cast(pa.int64()))
    assert (np.diff(times) >= 0).all()
    assert times.max() < 2 * 4000 * MEAN_GAP_US


def test_a_partition_shifts_every_third_stream_and_every_third_hint():
    design = TenStreams("poisson", in_window=4000)
    for number, table in enumerate(design.tables(3).values()):
        partition = design.partition(np.asarray(table["symbol"]))
        for k in range(PARTITIONS):
            here = partition == k
            shift = design.shift if number % PARTITIONS == k else 0
            assert np.asarray(table["v"])[here].mean() == pytest.approx(1 + shift, abs=0.1)
            for hint in range(HINTS):
                shift = design.shift if hint % PARTITIONS == k else 0
                values = np.asarray(table[f"a{hint + 1}"])[here]
                assert values.mean() == pytest.approx(1 + shift, abs=0.1)


def test_with_one_kind_the_same_streams_are_shifted_for_every_symbol():
    design = TenStreams("poisson", in_window=4000, kinds=1)
    means = [np.asarray(table["v"]).mean() for table in design.tables(2).values()]
    shifted = [number % PARTITIONS == 0 for number in range(10)]
    assert means == [pytest.approx(4.0 if each else 1.0, abs=0.1) for each in shifted]


def test_with_nine_kinds_three_streams_are_shifted_and_the_hints_are_the_digits_of_the_kind():
    design = TenStreams("poisson", in_window=9000, kinds=9)
    seen = set()
    for number, table in enumerate(design.tables(2).values()):
        partition = design.partition(np.asarray(table["symbol"]))
        assert set(partition.tolist()) == set(range(9))
        for kind in range(9):
            here = partition == kind
            shifted = (number - kind) % 10 in (0, 1, 3)
            seen.add((number, kind) if shifted else None)
            mean = np.asarray(table["v"])[here].mean()
            assert mean == pytest.approx(4.0 if shifted else 1.0, abs=0.15)
            hints = [np.asarray(table[f"a{hint + 1}"])[here].mean() > 2.5 for hint in range(HINTS)]
            assert hints == [bool(kind + 1 >> hint & 1) for hint in range(HINTS)]
    assert len(seen - {None}) == 27


def test_a_probe_of_a_stream_shifted_alike_finds_as_many_as_asked_for():
    design = TenStreams("poisson", in_window=3000, streams=4, matches=3.0)
    profile = StreamSubject(design, 0).profiles(3000)["s0"]
    partition = design.partition(np.asarray(profile.sample["symbol"]))
    outcomes = profile.outcomes
    alike = outcomes[partition == 0][:, 2]  # S3 is shifted where S0 is
    assert alike.mean() == pytest.approx(3.0, rel=0.3)  # S3 is slower or faster than the mean
    assert outcomes[partition == 1][:, 0].mean() < 0.25 * alike.mean()  # S1 is, where S0 is not


def test_in_uniform_data_no_partition_says_anything():
    design = TenStreams("uniform", matches=1.0, in_window=3000, streams=4)
    profile = StreamSubject(design, 0).profiles(3000)["s0"]
    partition = design.partition(np.asarray(profile.sample["symbol"]))
    found = [profile.outcomes[partition == k].mean() for k in range(PARTITIONS)]
    assert max(found) < 1.3 * min(found)


def test_the_core_gives_what_duckdb_gives_whatever_the_steps():
    subject = StreamSubject(SMALL, 2.5)
    join, tables = subject.join, subject.tables()
    streams = as_batches({name.lower(): table for name, table in tables.items()})
    meshes = {alias: written_mesh(view) for alias, view in join.views.items()}
    connection = duckdb.connect()
    for name, table in tables.items():
        connection.register(name, table)
    newest = "greatest(" + ", ".join(f"epoch_us({a}.ts)" for a in SMALL.aliases) + ")"
    window_us = SMALL.window_s * 1_000_000
    meaning = [f"{newest} - epoch_us({a}.ts) <= {window_us}" for a in SMALL.aliases]
    keys = [f"s0.{key} = {a}.{key}" for a in SMALL.aliases[1:] for key in ("symbol", "v")]
    ids = ", ".join(f"{a}.id" for a in SMALL.aliases)
    relations = ", ".join(f"{a.upper()} {a}" for a in SMALL.aliases)
    sql = f"SELECT {ids} FROM {relations} WHERE {' AND '.join(keys + meaning)}"
    wanted = Counter(connection.execute(sql).fetchall())
    assert sum(wanted.values()) > 50
    for step_rows in (137, 1600, 10**6):
        got: Counter[tuple[int, ...]] = Counter()

        def sink(batch: pa.RecordBatch, got: Counter[tuple[int, ...]] = got) -> None:
            got.update(tuple(row.values()) for row in batch.to_pylist())

        run = run_core(join, streams, by_meshes(meshes), step_rows, sink)
        assert got == wanted
        assert run.metrics.rows_in == sum(rows.num_rows for rows in streams.values())
        assert run.curve[-1][1] == sum(wanted.values())


def test_both_rivals_learn_from_the_same_profile_and_agree():
    design = TenStreams("poisson", in_window=2000, streams=5, shift=4, matches=6.0)
    subject = StreamSubject(design, 2)
    profiles = subject.profiles(1000)
    meshes = train_stream_rivals(subject.join, profiles, step=10**6)
    assert meshes[SP].is_single
    counted = probes_a_tuple(design, profiles, meshes)
    assert counted.bound <= counted.oracle <= counted.sp
    timing, last = race_core(subject, on_meshes(meshes), 1, step=10_000)
    assert timing.answer[0] == last[QM].metrics.rows_out == last[SP].metrics.rows_out
    assert last[SP].probes_a_tuple >= 0.8 * last[QM].probes_a_tuple
