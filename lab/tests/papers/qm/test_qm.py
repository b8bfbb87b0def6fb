import gzip
import json
from dataclasses import replace

import pytest

from querymesh.errors import QueryMeshError
from querymesh.optimize.search.start import STARTS
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.data import intel_lab
from querymesh_lab.bench.data.real_folder import holds
from querymesh_lab.papers import papers
from querymesh_lab.papers.claim import Claim, Result
from querymesh_lab.papers.qm import output_rate, over_time, search_time, starts
from querymesh_lab.papers.qm import qm_lab as lab
from querymesh_lab.papers.qm.qm import FIGURES
from querymesh_lab.papers.qm.rivals import QM, SP, LookUpSubject, race, train_rivals
from querymesh_lab.papers.qm.ten_way import SOURCE, TenWay
from querymesh_lab.papers.qm.windows import sensitivity
from querymesh_lab.papers.qm.windows.ten_streams import TenStreams
from querymesh_lab.papers.reproduced import Reproduced

PROMISED = {"paper", "figure", "claim", "paper_value", "our_value", "unit", "verdict"}
VERDICTS = {"exceeds", "overshoots", "direction", "undecided", "contradicts", "not yet"}

SMALL = TenWay(symbols=100, partners=4)


def small_subject(rows):
    return LookUpSubject(SMALL.query(), SOURCE, SMALL.source(rows)[0], SMALL.partner_tables())


@pytest.fixture(scope="module")
def bench(spark):
    return Bench(quick=True, start=lambda: spark)


def check_rows(results):
    rows = json.loads(json.dumps([result.as_row("a command") for result in results]))
    assert rows
    for row in rows:
        assert row.keys() >= PROMISED
        assert row["verdict"] in VERDICTS
        assert (row["our_value"] is None) == (row["verdict"] == "not yet")
        assert row["details"]["command"] == "a command"
    return rows


def test_rivals_agree_and_are_timed_inside_the_fabric_and_as_a_job(bench):
    subject = small_subject(6000)
    meshes = train_rivals(subject, subject.profile(4000))
    raced = race(bench, subject, meshes, rounds=2)
    assert raced.fabric.rounds == raced.job.rounds == 2
    assert raced.last[QM].rows_in == raced.last[SP].rows_in == 6000
    assert raced.last[QM].rows_out == raced.last[SP].rows_out == raced.fabric.answer[0]
    assert raced.last[QM].evaluations < raced.last[SP].evaluations
    for name, seconds in raced.fabric.median_seconds().items():
        assert 0 < seconds < 2 * raced.job.median_seconds()[name]  # two tasks at a time


def test_figure_10_has_a_row_for_each_claim_those_of_the_eddy_among_them(bench):
    design = TenStreams("poisson", in_window=1000, streams=5, shift=4, matches=6.0)
    poisson = output_rate.measure(bench, design)
    uniform = replace(poisson, data="uniform")
    varied = sensitivity.measure(bench, design)
    look_ups = output_rate.race_look_ups(bench, SMALL)
    rows = check_rows(output_rate.results(poisson, uniform, look_ups, varied))
    stated = {row["claim"]: row["paper_value"] for row in rows}
    assert stated["Poisson: output rate, QM over SP"] == 1.44
    assert stated["uniform: output rate, QM over SP"] == 0.978
    assert stated["Poisson: overhead of QM, classifying"] == 2.0
    eddies = {row["claim"]: row for row in rows if "MR+CBR" in row["claim"]}
    assert len(eddies) == 6
    assert eddies["Poisson: output rate, QM over MR+CBR"]["paper_value"] == 1.27
    assert all(row["our_value"] > 0 for row in eddies.values())
    batched = eddies["Poisson: overhead of MR+CBR in batches, all but operators and output"]
    alone = eddies["Poisson: overhead of MR+CBR, all but operators and output"]
    assert batched["details"]["routing_calls"] < alone["details"]["routing_calls"]
    details = rows[0]["details"]
    assert details["sensitivity"][0]["sp"] >= details["sensitivity"][0]["oracle"]
    assert details["results_by_cpu_second"]["QM"][-1][1] > 0
    counted = next(row for row in rows if "probes a tuple" in row["claim"])
    assert counted["our_value"] == pytest.approx(
        details["probes_SP"] / details["probes_QM"], rel=1e-3
    )
    hashed = next(row for row in rows if "static partners" in row["claim"])
    assert hashed["details"]["probes_QM"] < hashed["details"]["probes_SP"]


def test_a_stream_is_followed_until_its_time_is_over(bench, monkeypatch):
    monkeypatch.setattr(over_time, "QUICK_ROWS_PER_BATCH", 4000)
    subject = small_subject(4000)
    seen = over_time.watch(bench, subject, over_time.ready(subject, 2000), "small")
    inside, whole, *eddy = check_rows(over_time.results("11a", "small", seen))
    assert [row["claim"] for row in eddy] == [
        f"small: results by the end, QM over {name}{where}"
        for name in ("MR+CBR", "MR+CBR in batches")
        for where in ("", ", whole Spark")
    ]
    assert set(seen.curves) == {"QM", "SP", "MR+CBR", "MR+CBR in batches", "QM again"}
    assert inside["details"]["time_scale"] == whole["details"]["time_scale"] == 1800
    assert min(inside["details"]["results_per_second"]["QM"]) > 0
    for curve in seen.curves.values():
        assert curve[0] == (0.0, 0)
        assert curve == sorted(curve)
        assert curve[-1][0] >= 2.0
        assert curve[-1][1] > 0


def test_figure_12_states_how_search_time_grows(bench):
    times = search_time.SearchTimes(
        [search_time.time_search(n, 4, search=s) for s in search_time.SHORT for n in (4, 8)],
        [search_time.time_search(6, m, search=s) for s in search_time.SHORT for m in (2, 4)],
        0.4,
        0.5,
    )
    rows = check_rows(search_time.results(times))
    assert [row["unit"] for row in rows] == ["exponent"] * 4 + ["s"] * 3
    assert [row["our_value"] for row in rows[4:6]] == [0.4, 0.5]
    assert rows[4]["verdict"] == "exceeds"


def test_figure_13_compares_every_start_there_is(bench, monkeypatch):
    monkeypatch.setattr(starts, "TenWay", lambda seed: TenWay(symbols=50, partners=4, seed=seed))
    monkeypatch.setattr(starts, "UNSEEN", 1000)
    monkeypatch.setattr(starts, "SAMPLE", 500)
    monkeypatch.setattr(starts, "FEW_TUPLES", 5)
    found = starts.measure(bench)
    assert len(found) == len(STARTS) * len(starts.STOPS)
    rows = check_rows(starts.results(found))
    assert {row["claim"] for row in rows} == {
        f"output rate, route-driven over {start} start" for start in starts.STATED
    }


def test_lab_readings_become_a_stream_and_ten_partners(tmp_path):
    folder = tmp_path / "intel_lab"
    folder.mkdir()
    (folder / "mote_locs.txt").write_text(
        "1 1 1\n2 1 20\n3 20 1\n4 20 20\n5 40 1\n6 40 20\n7 1 2\n"
    )
    lines = [
        f"2004-03-04 0{hour}:30:00.5 {hour} {mote} 20.{mote} 40.0 {mote}5.5 2.6\n"
        for hour in range(3)
        for mote in (1, 2, 3, 4, 5, 6, 7)
    ]
    lines += [
        "2004-03-04 01:00:00.5 9 1 20.0 40.0  2.6\n",
        "2004-03-04 01:00:00.5 9 65407 1 1 1 1\n",
    ]
    with gzip.open(folder / "labdata_2004-03-04_06.txt.gz", "wt") as out:
        out.writelines(lines)
    assert holds(tmp_path, intel_lab.FILES)
    assert not holds(None, intel_lab.FILES)
    subject = lab.subject(tmp_path)
    assert subject.table.num_rows == 6  # motes 1 and 7 stand in the same zone
    assert len(subject.partners) == 10
    assert subject.profile(6).operators == 10


def test_a_paper_or_figure_that_is_not_there_is_named():
    with pytest.raises(QueryMeshError, match="unknown paper 'qn'"):
        papers.reproduce("qn", True, None, print)
    with pytest.raises(QueryMeshError, match="unknown figure '14'"):
        papers.reproduce("qm", True, None, print, ["14"])


def test_all_runs_what_is_asked_for_of_every_paper_and_draws(tmp_path, monkeypatch):
    claimed = [Result(Claim("qm", "1", f"claim {n}", None), 1.0) for n in range(4)]
    found = Reproduced(claimed, [lambda: {"figure-1": "<svg/>"}])
    figures = {"1": lambda bench: found, "2": lambda bench: pytest.fail("not asked for")}
    monkeypatch.setattr(papers, "PAPERS", {"qm": figures, "om": {"3": figures["2"]}})
    said = []
    rows = papers.reproduce("all", True, tmp_path / "plots", said.append, ["1"])
    assert len(rows) == 4
    assert rows[0]["details"]["command"] == "querymesh reproduce qm --quick"
    assert said == ["qm figure 1 …", f"plot written to {tmp_path / 'plots' / 'qm-figure-1.svg'}"]
    assert (tmp_path / "plots" / "qm-figure-1.svg").read_text() == "<svg/>"


def test_every_figure_of_the_paper_is_there():
    assert list(FIGURES) == [
        "10", "grid-1000", "grid-3000", "grid-10000", "grid-spark", "11", "11a-look-ups",
        "11b-look-ups", "12", "13", "13-look-ups",
    ]  # fmt: skip
