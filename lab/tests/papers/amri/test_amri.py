import json
from dataclasses import replace

import numpy as np
import pytest

from querymesh.index.store.index_plan import BitPlan, HashPlan
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.measure import RivalsDisagreeError
from querymesh_lab.papers import papers
from querymesh_lab.papers.amri import amri, amri_lab, index_race
from querymesh_lab.papers.amri.fixed_router import OrderRouter
from querymesh_lab.papers.amri.index_race import IndexRun, results_ratio
from querymesh_lab.papers.amri.index_rivals import (
    AMRI,
    FIGURE_8,
    FIXED,
    FLUCTUATIONS,
    OWN,
    PATHS,
    each_pattern,
    exact,
    fixed,
    foreseen,
    hashes,
    settings,
    synthetic,
)
from querymesh_lab.papers.amri.index_rivals import amri as adapting
from querymesh_lab.papers.amri.phases import PAIRS, STREAMS, Fluctuation, levels, search

SOME = Fluctuation(levels(("150243", "450213", "413520")), phase_tuples=50, window=100)


@pytest.fixture(scope="module")
def bench():
    return Bench(quick=True)  # everything runs in this process, without Spark


def rows_of(results):
    rows = json.loads(json.dumps([result.as_row("a command") for result in results]))
    assert rows
    assert {row["paper"] for row in rows} == {"amri"}
    return rows


@pytest.mark.parametrize("name", list(FLUCTUATIONS))
def test_each_stream_has_as_many_best_orders_as_the_figure_asks_for(name):
    found = FLUCTUATIONS[name]
    assert tuple(found.paths().values()) == PATHS[name]
    assert found.margin() > 1.1


def test_phases_with_a_wanted_number_of_orders_are_found_by_searching():
    wanted = dict(zip(STREAMS, (1, 2, 2, 2), strict=True))
    found = search(wanted, phases=2, tries=500)
    assert found.paths() == wanted


def test_values_lie_below_the_domain_of_their_phase_and_shift_with_it():
    streams = SOME.streams(400, 0)
    assert set(streams) == set(STREAMS)
    for pair in PAIRS:
        for stream in pair:
            values = np.asarray(streams[stream].column(pair))
            for first in range(0, 400, 50):
                domain = SOME.domain(pair, first // 50)
                assert values[first : first + 50].min() >= 0
                assert values[first : first + 50].max() < domain
    assert np.asarray(streams["a"].column("ts")).astype(int).tolist() == list(range(400))


def test_tuples_that_an_order_makes_are_those_that_are_counted():
    how = Fluctuation(levels(("150243", "450213")), phase_tuples=200, window=400, spread=1.5)
    counted = np.zeros(2)
    for seed in range(40):
        streams = how.streams(900, seed)
        of = {(s, p): np.asarray(streams[s].column(p)) for s in STREAMS for p in PAIRS if s in p}
        now, held = 900 - 1, slice(900 - 1 - 400, 900 - 1)  # in the middle of the fifth phase
        b = of["b", "ab"][held] == of["a", "ab"][now]
        c = of["c", "ac"][held] == of["a", "ac"][now]
        met = of["b", "bc"][held][:, None] == of["c", "bc"][held][None, :]
        counted += b.sum(), (met & b[:, None] & c[None, :]).sum()
    expected = how.tuples_made("a", 4)["b", "c", "d"]
    assert counted.sum() / 40 == pytest.approx(expected, rel=0.15)


def test_the_best_order_makes_the_fewest_tuples():
    for stream in STREAMS:
        for phase, order in enumerate(SOME.best_orders(stream)):
            made = SOME.tuples_made(stream, phase)
            assert len(made) == 6
            assert made[order] == min(made.values())


def test_the_router_takes_the_order_that_makes_fewest_tuples(bench):
    join = synthetic("constant", True).join
    router = OrderRouter(join.views["a"])
    ahead = frozenset(router.routes()[0])
    passed = dict(zip(sorted(ahead), (5.0, 1.0, 9.0), strict=True))
    for index in sorted(ahead):
        router.learn(ahead, index, passed[index])
        for second in ahead - {index}:
            router.learn(ahead - {index}, second, 2.0 * passed[second])
    best, least, most = sorted(ahead, key=passed.__getitem__)
    assert router.routes() == [(best, least, most)]
    for _ in range(9):
        router.learn(ahead, best, 50.0)
    assert router.routes()[0][0] == least


def test_results_are_compared_when_the_faster_one_is_done():
    fast = IndexRun([(0.0, 0), (1.0, 100)])
    slow = IndexRun([(0.0, 0), (1.0, 40), (2.0, 100)])
    assert results_ratio(fast, slow) == 2.5
    assert results_ratio(slow, fast) == 0.4


def test_every_index_gets_the_same_requests_and_gives_the_same_results():
    paper = settings(FIGURE_8, True)
    on = replace(synthetic("single adapting", True), limit_seconds=60.0)
    rivals = [adapting(paper), exact(paper), fixed(), foreseen(), hashes(paper, 2), each_pattern()]
    runs = {each.name: on.run(each) for each in rivals}
    assert all(run.complete for run in runs.values())
    assert len({(run.probes, run.curve[-1][1]) for run in runs.values()}) == 1
    assert runs[FIXED].changes == 0 < runs[AMRI].changes
    assert runs[FIXED].index_bytes < runs["2 adaptive hash"].index_bytes


def test_rivals_start_with_what_is_best_for_the_training_stream():
    on = synthetic("constant", True)
    paper = settings(FIGURE_8, True)
    assert on.plans(fixed()) == on.plans(adapting(paper)) == on.plans(exact(paper))
    assert all(isinstance(plan, BitPlan) for plan in on.plans(fixed()).values())
    for plan in on.plans(hashes(paper, 3, adaptive=False)).values():
        assert isinstance(plan, HashPlan)
        assert len(plan.patterns) == 3


def test_rivals_that_differ_are_not_compared():
    one, other = IndexRun([(0.0, 0), (1.0, 5)]), IndexRun([(0.0, 0), (1.0, 6)])
    with pytest.raises(RivalsDisagreeError, match="differ"):
        index_race._same_requests({"one": [one], "other": [other]})


def test_a_run_that_takes_too_long_is_cut_off():
    on = replace(synthetic("constant", True), limit_seconds=0.0)
    run = on.run(fixed())
    assert not run.complete
    assert len(run.curve) == 2


def test_figure_9b_has_the_papers_claims_and_ours(bench):
    found = amri.FIGURES["9b"](bench)
    rows = {row["claim"]: row for row in rows_of(found.results)}
    assert rows["AMRI over fixed bitmap: results in a fixed time"]["paper_value"] == 1.75
    assert rows[f"{OWN} over {FIXED}: results in a fixed time"]["whose"] == "project"
    rivals = rows["AMRI over fixed bitmap: results in a fixed time"]["details"]["rivals"]
    assert {"comparisons_per_probe", "state_bytes", "tuning_percent"} <= rivals[AMRI].keys()
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    assert all(text.startswith("<svg") for draw in found.drawings for text in draw().values())


def test_each_two_quarters_of_the_lab_share_another_measure():
    shared = [set(pair.split()) for pairs in amri_lab.SHARED.values() for pair in pairs]
    assert len(shared) == 6
    assert all(shared.count(pair) == 1 for pair in shared)
    for pairs in amri_lab.SHARED.values():
        assert set(" ".join(pairs).split()) == {"nw", "ne", "sw", "se"}


def test_without_the_lab_data_its_figure_says_so(bench, monkeypatch):
    monkeypatch.setattr(amri, "folder_with", lambda files: None)
    rows = rows_of(amri.FIGURES["9c"](bench).results)
    assert [row["note"] for row in rows] == ["no Lab data here"]


def test_the_paper_is_known_by_its_name():
    assert papers.PAPERS["amri"] is amri.FIGURES
