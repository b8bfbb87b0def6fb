"""The cases of `bench join`: data as designed, an exact answer, Spark's chain equal to it."""

import subprocess
import sys
from dataclasses import replace
from itertools import product

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querymesh.errors import QueryMeshError, SetupError
from querymesh_lab.bench.data.join_data import Design, batches, streams
from querymesh_lab.bench.data.join_graphs import JOIN_GRAPHS
from querymesh_lab.bench.finding import Finding
from querymesh_lab.bench.joins import join_bench, join_case
from querymesh_lab.bench.joins.flink.flink_contestant import prepare_flink
from querymesh_lab.bench.joins.flink.flink_sql import flink_sql
from querymesh_lab.bench.joins.join_bench import DESIGNS, JoinContest, run_join, scaled
from querymesh_lab.bench.joins.join_case import (
    JoinCase,
    Outcome,
    combined_id,
    duckdb_sql,
    window_sql,
    write_case,
)
from querymesh_lab.bench.joins.on_spark.spark_chain import orders, spark_chain
from querymesh_lab.bench.joins.processor_time import cpu_seconds
from querymesh_lab.bench.measure import RivalsDisagreeError

SMALL = {"rows": 25, "rate": 10.0, "window_s": 1, "batches": 3}
MANY = {"rows": 8000, "rate": 400.0, "window_s": 5}


def in_tenths(design: Design):
    """The same streams with times cut to tenths of a second: many are a window apart exactly."""
    cut = {}
    for name, table in streams(design).items():
        ts = table["ts"].cast("int64").to_numpy() // 100_000 * 100_000
        place = table.schema.get_field_index("ts")
        cut[name] = table.set_column(place, "ts", pa.array(ts, table.schema.field("ts").type))
    return cut


def brute_force(design: Design, tables) -> list[tuple[int, ...]]:
    """The result by the definition: every combination is looked at."""
    rows = [tables[name].to_pylist() for name in design.graph.streams]
    places = {name: number for number, name in enumerate(design.graph.streams)}
    found = []
    for combination in product(*rows):
        newest = max(row["ts"] for row in combination)
        if any((newest - row["ts"]).total_seconds() > design.window_s for row in combination):
            continue
        values = [
            {combination[places[name]][attribute] for name in tied}
            for attribute, tied in design.graph.ties.items()
        ]
        if all(len(equal) == 1 for equal in values):
            found.append(tuple(row["id"] for row in combination))
    return sorted(found)


@settings(max_examples=12, deadline=None)
@given(
    rare=st.sampled_from([0.0, 0.1]),
    disorder_s=st.sampled_from([0.0, 0.7]),
    seed=st.integers(0, 50),
)
def test_duckdb_gives_the_combinations_of_the_definition(tmp_path_factory, rare, disorder_s, seed):
    design = Design("3-way", matches=3.0, rare=rare, disorder_s=disorder_s, seed=seed, **SMALL)
    folder = tmp_path_factory.mktemp("case")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_case, "streams", in_tenths)
        case = write_case(design, folder)
    found = duckdb.sql(duckdb_sql(design, folder)).fetchall()
    expected = brute_force(design, in_tenths(design))
    assert sorted(found) == expected
    assert case.expected[0] == len(expected)


@pytest.mark.parametrize("shape", ["clique", "star"])
def test_the_other_shapes_mean_the_same_to_duckdb(tmp_path, shape):
    design = Design(
        shape, matches=3.0, linked=0.5, rows=10, rate=10.0, window_s=1, batches=2, seed=3
    )
    write_case(design, tmp_path)
    expected = brute_force(design, streams(design))
    assert sorted(duckdb.sql(duckdb_sql(design, tmp_path)).fetchall()) == expected
    assert expected


def partners(design: Design, of: str, among: str) -> dict[int, float]:
    """For each kind, how many partners a row of one stream finds in another's window before it."""
    tables = streams(design)
    attribute = next(name for name, tied in design.graph.ties.items() if {of, among} <= set(tied))
    probing, probed = tables[of], tables[among]
    counted = duckdb.sql(
        f"SELECT l.kind, count(r.id) / count(DISTINCT l.id) FROM probing l LEFT JOIN probed r "
        f"ON l.{attribute} = r.{attribute} AND r.ts <= l.ts "
        f"AND epoch_ms(l.ts) - epoch_ms(r.ts) <= {design.window_s * 1000} "
        f"WHERE epoch_ms(l.ts) - {streams_start(probing)} >= {design.window_s * 1000} GROUP BY ALL"
    ).fetchall()
    assert probed.num_rows == probing.num_rows
    return {int(kind): float(mean) for kind, mean in counted}


def streams_start(table) -> int:
    return int(np.min(table["ts"].cast("int64").to_numpy())) // 1000


@pytest.mark.parametrize("shape", sorted(JOIN_GRAPHS))
def test_in_a_uniform_case_every_kind_finds_as_many_partners_everywhere(shape):
    design = Design(shape, matches=2.0, **MANY)
    for among in design.graph.streams[1:]:
        assert all(
            mean == pytest.approx(2.0, rel=0.15) for mean in partners(design, "A", among).values()
        )


@pytest.mark.parametrize("shape", sorted(JOIN_GRAPHS))
def test_in_a_skewed_case_a_kind_finds_nearly_nobody_in_its_own_stream_only(shape):
    design = Design(shape, matches=3.0, rare=0.01, **MANY)
    names = design.graph.streams
    for number, among in enumerate(names[1:], start=1):
        by_kind = partners(design, "A", among)
        assert by_kind[number] < 0.3
        for kind in set(by_kind) - {0, number}:  # kind 0 has hardly a row of A
            assert by_kind[kind] == pytest.approx(3.0, rel=0.2)


def test_over_all_kinds_no_stream_is_better_to_probe_than_another():
    design = Design("5-way", matches=3.0, rare=0.01, **MANY)
    kinds = streams(design)["A"]["kind"].to_numpy()
    share = np.bincount(kinds, minlength=5) / len(kinds)
    means = [
        sum(share[kind] * mean for kind, mean in partners(design, "A", among).items())
        for among in "BCDE"
    ]
    assert max(means) / min(means) < 1.15


def test_a_clique_has_results_by_its_linked_rows(tmp_path):
    design = Design("clique", matches=2.0, linked=0.2, **MANY)
    linked = write_case(design, tmp_path / "linked").expected[0]
    alone = write_case(replace(design, linked=0.0), tmp_path / "alone").expected[0]
    assert linked > design.rows
    assert alone < design.rows / 100


def test_the_same_seed_gives_the_same_streams_and_another_seed_others():
    design = Design("star", **SMALL)
    assert streams(design) == streams(design)
    assert streams(design)["A"] != streams(replace(design, seed=1))["A"]


def test_disorder_moves_rows_by_no_more_than_it_says():
    design = Design("3-way", disorder_s=0.5, **MANY)
    arrived = streams(design)["A"]["ts"].cast("int64").to_numpy()
    behind_s = (np.maximum.accumulate(arrived) - arrived) / 1e6
    assert 0.3 < behind_s.max() <= 0.5 + 0.002


def test_micro_batches_are_the_whole_stream_in_its_order(tmp_path):
    design = Design("3-way", disorder_s=0.3, **SMALL)
    case = write_case(design, tmp_path)
    files = sorted(case.files("B").iterdir(), key=lambda path: path.stat().st_mtime)
    assert [path.name for path in files] == ["000.parquet", "001.parquet", "002.parquet"]
    ids = [i for path in files for i in pq.read_table(path)["id"].to_pylist()]
    assert ids == streams(design)["B"]["id"].to_pylist()
    assert sum(batch.num_rows for batch in batches(design, streams(design)["B"])) == design.rows


def test_a_combined_id_tells_members_of_different_streams_apart():
    ids = ["a_id", "b_id"]
    text = f"SELECT {combined_id(ids)} FROM (VALUES (1, 2), (2, 1), (1, 1)) t(a_id, b_id)"
    assert len(set(duckdb.sql(text).fetchall())) == 3


def test_the_window_query_reads_as_the_documentation_writes_it():
    assert window_sql(Design("3-way", window_s=5)) == (
        "SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id FROM A a [RANGE 5 SECONDS], "
        "B b [RANGE 5 SECONDS], C c [RANGE 5 SECONDS] WHERE a.k = b.k AND a.k = c.k"
    )


def test_every_order_of_a_chain_has_an_equality_for_each_join():
    assert [order[:2] for order in orders(Design("star"))] == [
        ("A", "B"), ("B", "A"), ("C", "A"), ("D", "A"), ("E", "A"),
    ]  # fmt: skip


def test_flink_gets_event_times_in_the_chain_and_numbers_for_the_multi_join():
    design = Design("3-way", window_s=5)
    assert "b.ts BETWEEN a.ts - INTERVAL '5' SECOND" in flink_sql(design, "chain")
    assert ".ts BETWEEN" not in flink_sql(design, "multi-join")
    for way in ("chain", "multi-join"):
        assert "c.ts_ms - b.ts_ms BETWEEN -5000 AND 5000" in flink_sql(design, way)


def test_without_java_flink_is_left_out_with_the_reason(monkeypatch, tmp_path):
    def none() -> None:
        raise SetupError("no Java here")

    monkeypatch.setattr("querymesh_lab.bench.joins.flink.flink_contestant.find_java", none)
    assert prepare_flink(tmp_path) == "no Java here"


def test_a_wrong_answer_stops_the_contest(tmp_path):
    case = JoinCase(Design("3-way"), tmp_path, (1, 2, 3))
    contest = JoinContest(case, {"wrong": lambda _: Outcome((1, 2, 4), 0.1)})
    with pytest.raises(RivalsDisagreeError, match=r"wrong answered \(1, 2, 4\)"):
        contest.run(1, 0, print)


def test_contestants_are_timed_by_what_they_say_they_took(tmp_path):
    case = JoinCase(Design("3-way"), tmp_path, (1, 2, 3))
    contest = JoinContest(
        case,
        {
            "fast": lambda _: Outcome((1, 2, 3), 2.0, state_bytes=5),
            "spark": lambda _: Outcome((1, 2, 3), 6.0),
        },
    )
    timing = contest.run(3, 1, lambda _: None)
    assert timing.median_seconds()["fast"] == 2.0
    finding = join_bench._finding(contest, timing, "fast", {})
    assert isinstance(finding, Finding)
    assert finding.value == case.design.all_rows / 2.0 / 2
    assert finding.details["times_as_fast_as_spark"] == 3.0
    assert finding.details["times_as_fast_as_single"] is None
    assert finding.details["state_bytes"] == 5
    assert finding.details["a_a"] == 1.0


def test_sparks_chain_gives_the_exact_result_of_late_and_skewed_streams(
    spark, tmp_path, monkeypatch
):
    monkeypatch.setattr(join_case, "streams", in_tenths)
    design = replace(scaled(DESIGNS[1], quick=True), rows=600, batches=2, disorder_s=0.5, rare=0.05)
    case = write_case(design, tmp_path)
    outcome = spark_chain(spark, case)
    assert outcome.answer == case.expected
    assert outcome.answer[0] > 100
    assert outcome.state_rows > 0
    assert outcome.cpu_seconds > 0
    assert outcome.state_bytes > 0
    assert outcome.details["dropped_by_watermark"] == 0


def test_the_runner_gives_rows_of_the_published_shape(spark, monkeypatch):
    small = {"rows": 300, "rate": 100.0, "window_s": 1, "batches": 1}
    monkeypatch.setattr(join_bench, "scaled", lambda design, quick: replace(design, **small))
    said: list[str] = []
    rows = run_join(True, ["3-way uniform"], said.append, ["spark"])
    assert [(row["case"], row["claim"]) for row in rows] == [("3-way uniform", "spark")]
    assert rows[0]["value"] > 0
    assert rows[0]["details"]["times_as_fast_as_spark"] == 1.0
    assert rows[0]["details"]["command"] == "querymesh bench join --quick"
    join_bench.print_rows(rows)
    assert said


PARENT = """
import subprocess, sys

spin = "import time\\nwhile time.process_time() < 0.3: pass\\n"

def tell(word):
    print(word, flush=True)
    input()

tell("began")
subprocess.run([sys.executable, "-c", spin], check=True)
tell("ended")
wait = [sys.executable, "-c", spin + "print('spun', flush=True); input()"]
with subprocess.Popen(wait, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
    running.stdout.readline()
    tell(running.pid)
    running.communicate(b"\\n")
"""


def test_processor_time_counts_children_that_run_and_children_that_ended():
    # A process of its own: Python workers of a session below this one come and go.
    command = [sys.executable, "-c", PARENT]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as parent:
        words, seen = [], []
        for _ in range(3):
            words.append(parent.stdout.readline().strip())
            seen.append(cpu_seconds(parent.pid))
            if words[-1].isdecimal():
                assert cpu_seconds(int(words[-1])) >= 0.25
            parent.stdin.write("\n")
            parent.stdin.flush()
    assert words[:2] == ["began", "ended"]
    before, ended, running = seen
    assert ended - before >= 0.25
    assert running - ended >= 0.25


def test_an_unknown_case_or_contestant_names_those_there_are():
    with pytest.raises(QueryMeshError, match="unknown case '3-way'"):
        run_join(True, ["3-way"])
    with pytest.raises(QueryMeshError, match=r"unknown contestant 'flonk'"):
        run_join(True, None, print, ["flonk"])


def test_quick_is_smaller():
    assert scaled(DESIGNS[0], quick=False) is DESIGNS[0]
    assert all(scaled(design, quick=True).rows < design.rows for design in DESIGNS)
    assert len({design.name for design in DESIGNS}) == len(DESIGNS)
