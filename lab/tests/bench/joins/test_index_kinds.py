from querymesh.index.tune.indexing import INDEXES
from querymesh_lab.bench.joins.index_crossover import ASKED, StateLoad, _finding
from querymesh_lab.bench.joins.index_kinds import as_text, run_indices


def test_every_kind_of_index_is_set_beside_the_others():
    rows = run_indices(True, ["clique skewed"], lambda _: None)
    by_kind = {row["details"]["index"]: row["details"] for row in rows}
    assert set(by_kind) == set(INDEXES)
    assert len({at["results"] for at in by_kind.values()}) == 1
    assert by_kind["amri"]["index_bytes"] < by_kind["hash"]["index_bytes"]
    assert "clique skewed" in as_text(rows)


def test_the_time_of_maintenance_is_split_on_streams_that_stay_as_they_are():
    rows = run_indices(True, ["star uniform"], lambda _: None)
    (kept,) = [row for row in rows if "step" in row["details"]]
    at = kept["details"]
    assert kept["value"] == at["tuning_percent"] + at["laying_out_percent"] > 0
    assert "maintenance, %" in as_text(rows)


def test_one_state_is_weighed_under_a_load():
    found = _finding(StateLoad(7, 1000, 1.0, 2.0), 1)
    at = found.details
    assert at["patterns"] == len(ASKED[7])
    assert at["bits_bytes_a_row"] < 10 < at["hash_bytes_a_row"]
    assert at["auto"] in ("hash", "bits")
    assert at["auto_over_best"] >= 1
