import math

import numpy as np
import pyarrow as pa
import pytest

from querymesh.errors import QueryMeshError
from querymesh.fabric.core.metrics import Metrics
from querymesh.fabric.routers.routing import PAPER, Routing
from querymesh.query.parse.query import query
from querymesh_lab.bench.data.classed import OPPOSITE
from querymesh_lab.bench.data.messages import messages
from querymesh_lab.bench.filters.correlated import pooled
from querymesh_lab.bench.measure import RivalsDisagreeError, silent
from querymesh_lab.bench.policies import policies_bench
from querymesh_lab.bench.policies.filter_subjects import (
    FilterSubject,
    drifting,
    of_messages,
    of_readings,
)
from querymesh_lab.bench.policies.join_subjects import JoinSubject, of_design
from querymesh_lab.bench.policies.race import (
    PolicyRace,
    PolicyRun,
    answer_of,
    deciding,
    race,
    trained,
)
from querymesh_lab.papers import policy_cases
from querymesh_lab.papers.cbr.stream_star import StreamStar, skewed
from querymesh_lab.papers.policy_cases import MixedStar

EVERY = {**policies_bench.CASES, **policy_cases.CASES}
EDDIES = {"eddy": deciding("eddy", Routing()), "cbr": deciding("cbr", PAPER)}
SMALL_JOIN = {"rate": 60.0, "window_s": 4, "shape": "3-way", "matches": 6.0, "rare": 0.005}


def quick_rows(*cases):
    return policies_bench.run_policies(True, list(cases), silent, policy_cases.CASES)


@pytest.mark.parametrize("case", ["pooled", "3-way skewed", "Stream-Star, A < B"])
def test_a_quick_run_has_a_row_for_each_policy_and_names_its_command(case):
    rows = quick_rows(case)
    assert [row["details"]["policy"] for row in rows] == list(policies_bench.POLICIES)
    for row in rows:
        at = row["details"]
        assert row["case"] == case
        assert row["value"] == pytest.approx(at["evaluations"], abs=1e-4)
        assert at["command"] == "querymesh bench policies --quick"
        assert at["a_a"] > 0
        assert at["limit_bound"] <= at["evaluations"] * 1.02
        assert at["learned"]
    text = policies_bench.as_text(rows)
    assert len(text.splitlines()) == 1 + len(rows)
    assert text.count(case) == 1, "a case is named once"


def test_single_makes_no_calls_a_mesh_one_a_row_and_an_eddy_one_an_evaluation():
    source = of_readings("pooled", pooled(6_000))
    race = PolicyRace(source)
    race.enter({"single": trained(one_route=True), "mesh": trained(), **EDDIES})
    for name in race.makers:
        race.run(name)
    figures = {name: race.figures(name) for name in race.makers}
    assert figures["single"]["calls"] == 0
    assert figures["mesh"]["calls"] == 1
    for name in EDDIES:
        assert figures[name]["calls"] == pytest.approx(figures[name]["evaluations"])
    assert figures["mesh"]["evaluations"] < figures["single"]["evaluations"]


def test_the_limits_of_a_join_hold_for_every_policy():
    join = of_design("3-way skewed", 600, **SMALL_JOIN)
    bounds = join.bounds()
    assert 1 <= bounds.bound <= bounds.oracle
    race = PolicyRace(join)
    race.enter(EDDIES)
    for name in EDDIES:
        race.run(name)
        assert race.figures(name)["evaluations"] >= bounds.bound * 0.98
        assert race.figures(name)["comparisons"] > 0


def test_policies_that_disagree_are_not_compared():
    class Liar:
        name, kind = "liar", "filters"
        answers = iter([(3, 7), (2, 7)])

        def views(self):
            return {}

        def run(self, makers):
            return PolicyRun(next(self.answers), Metrics(), 0.1, 0.0, {}, {})

    with pytest.raises(RivalsDisagreeError, match=r"liar: mesh answered \(2, 7\)"):
        race(Liar(), {"single": trained(one_route=True), "mesh": trained()}, {}, 0, silent)


def test_an_answer_is_the_same_in_any_order_and_differs_with_any_row():
    rng = np.random.default_rng(0)
    ids, other = rng.integers(0, 1 << 40, (2, 500))
    batch = pa.record_batch({"a": ids, "b": other, "text": ["x"] * 500})
    order = rng.permutation(500)
    shuffled = batch.take(pa.array(order))
    assert answer_of([shuffled.slice(0, 77), shuffled.slice(77)]) == answer_of([batch])
    swapped = pa.record_batch({"a": other, "b": ids, "text": ["x"] * 500})
    assert answer_of([swapped]) != answer_of([batch])
    assert answer_of([batch.slice(1)]) != answer_of([batch])


def test_half_way_the_channels_of_a_drifting_stream_change_their_meaning():
    data, first, both = drifting(4_000)
    assert data.rows == 4_000
    assert data.table.column("id").to_pylist() == list(range(4_000))
    for half, shift in ((slice(0, 2_000), 0), (slice(2_000, 4_000), 1)):
        for kind in range(3):
            mine = data.passes[half][data.classes[half] % 3 == kind]
            assert mine.mean(axis=0) == pytest.approx(OPPOSITE[(kind + shift) % 3], abs=0.06)
    assert set(first.column("card").to_pylist()) <= set(data.table["card"][:2_000].to_pylist())
    late = set(data.table["card"][2_000:].to_pylist())
    assert sum(card in late for card in both["card"].to_pylist()) == len(both) // 2


def test_keys_of_the_mixed_star_do_not_tell_by_their_size_who_has_a_partner():
    selectivity = skewed(3, 0.1, 0.05)
    plain, mixed = StreamStar(selectivity, hashed=True), MixedStar(selectivity)
    batch, kind = mixed.source(4_000)
    before, same = plain.source(4_000)
    assert np.array_equal(kind, same)
    for number in (1, 2, 3):
        has_partner = np.asarray(before.column(f"fkd{number}")) < plain.dimension_rows
        keys = np.asarray(batch.column(f"fkd{number}"))
        hide = mixed.query().functions[f"hidden_{number}"].fn
        kept = set(mixed.dimensions()[f"d{number}"]["pk"].to_pylist())
        assert [hide(key) in kept for key in keys.tolist()] == has_partner.tolist()
        below = has_partner[keys < plain.dimension_rows].mean()
        assert below == pytest.approx(has_partner.mean(), abs=0.04)


def test_a_case_whose_data_are_missing_is_passed_over_saying_so(monkeypatch, tmp_path):
    monkeypatch.setenv("QUERYMESH_DATA", str(tmp_path))
    said = []
    assert policies_bench.run_policies(True, ["KDD connections"], said.append) == []
    assert said == ["  KDD connections: skipped, its data are not here"]


def test_an_unknown_case_is_refused_with_those_there_are():
    with pytest.raises(QueryMeshError, match=r"unknown case 'pold'.*pooled"):
        quick_rows("pold")


def test_every_case_names_itself():
    for name, (make, _, few) in EVERY.items():
        if name in ("CSIC requests", "KDD connections"):
            continue
        subject = make(few)
        assert subject.name == name
        assert isinstance(subject, FilterSubject | JoinSubject)


def test_a_figure_that_is_not_known_is_a_dash():
    assert policies_bench._two(math.nan) == "–"


def test_training_sees_the_sample_it_is_given():
    data = messages(400, OPPOSITE)
    sample = data.table.slice(0, 50)
    view = of_messages("few", data, sample).views()["Messages"]
    assert view.profile.rows == 50


def test_look_ups_and_filters_without_known_verdicts_are_limited_by_what_they_did():
    table = pa.table({"id": np.arange(300), "k": np.arange(300) % 10})
    partner = pa.table({"k": [0, 1, 2], "v": [5, 6, 7]})
    asked = query("SELECT s.id, p.v FROM S s, P p WHERE s.k = p.k AND s.id < 100")
    source = FilterSubject("small", asked, "S", table, {"P": partner})
    bounds = source.bounds()
    assert math.isnan(bounds.oracle)
    results = 30
    assert bounds.bound == pytest.approx((300 + results) / 300)
    race = PolicyRace(source)
    race.enter({"single": trained(one_route=True)})
    assert race.run("single")[0] == results
