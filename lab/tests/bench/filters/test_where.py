"""Cases end to end on small data: the shape of their findings and the equality of their answers."""

from itertools import permutations

import pyarrow as pa
import pytest

from querymesh.errors import QueryMeshError
from querymesh_lab.bench import fingerprint
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.data.classed import OPPOSITE
from querymesh_lab.bench.data.lines import PATTERNS, condition, lines
from querymesh_lab.bench.data.messages import PREDICATES, RELATION, messages
from querymesh_lab.bench.filters import correlated, other_engines, plain_spark
from querymesh_lab.bench.filters.contest import prepare, python_question
from querymesh_lab.bench.filters.where_bench import CASES, run_where
from querymesh_lab.bench.measure import RivalsDisagreeError

KEYS = {"case", "claim", "target", "value", "unit", "met", "details"}


@pytest.fixture(scope="module")
def contest(spark):
    data = messages(1500, OPPOSITE)
    made = prepare(
        Bench(quick=True, start=lambda: spark),
        python_question(RELATION, PREDICATES, data),
    )
    yield made
    made.close()


def test_mesh_and_single_give_the_designed_rows(contest):
    expected = int(contest.question.passes.all(axis=1).sum())
    for name, mesh in (("mesh", contest.mesh), ("best single", contest.single)):
        assert contest.run(mesh, name)()[0] == expected
        assert contest.last[name].rows_in == 1500


def test_counted_evaluations_are_those_of_the_designed_verdicts(contest):
    contest.run(contest.single, "best single")()
    effort = contest.effort("best single", contest.single)
    assert effort.evaluations == pytest.approx(contest.limits.single.evaluations)
    assert effort.us == pytest.approx(contest.limits.single.us)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("way", plain_spark.ways())
def test_plain_spark_gives_the_same_rows_in_every_way_to_write_it(contest, way):
    contest.check_rows({way: plain_spark.filtered(contest.df, PREDICATES, way)})


def test_one_function_by_hand_gives_the_same_rows(contest):
    contest.check_rows({"by hand": plain_spark.by_hand(contest.df, PREDICATES, (4, 2, 1, 3))})


def test_a_rival_with_other_rows_is_found_out(contest):
    with pytest.raises(RivalsDisagreeError, match="lazy gives 1500 rows"):
        contest.check_rows({"lazy": contest.df})


def test_details_hold_the_limits_and_what_the_mesh_did(contest):
    details = contest.details()
    assert details["rows"] == 1500
    assert details["bound"]["us"] <= details["oracle"]["us"] <= details["single"]["us"]
    assert details["mesh"]["evaluations"] <= 1.05 * details["oracle"]["evaluations"]
    assert set(details["cost_us"]) == {p.name for p in PREDICATES}


@pytest.mark.parametrize("engine", other_engines.installed())
def test_other_engines_find_the_same_lines(spark, engine):
    table = lines(400, OPPOSITE).table
    patterns = [pattern for _, pattern in PATTERNS]
    conditions = [condition(pattern) for pattern in patterns]
    route = (3, 1, 4, 2)
    ours = plain_spark.in_order(spark.createDataFrame(table), conditions, route)
    theirs = other_engines.regex_filter(engine, table, "line", patterns, route)
    assert theirs() == fingerprint.of_ids(ours)


def test_a_fingerprint_ignores_the_order_of_rows_but_not_their_values(spark):
    seen = set()
    for order in permutations([(1, "a"), (2, "b"), (2, "b")]):
        seen.add(fingerprint.of_rows(spark.createDataFrame(list(order), "id long, t string")))
    assert len(seen) == 1
    other = spark.createDataFrame([(1, "a"), (2, "b"), (2, "c")], "id long, t string")
    assert fingerprint.of_rows(other) not in seen


def test_an_empty_result_has_a_fingerprint_too(spark):
    empty = spark.createDataFrame(pa.table({"id": pa.array([], pa.int64())}))
    assert fingerprint.of_ids(empty) == (0, 0, 0)
    assert fingerprint.of_rows(empty) == (0, 0)


def test_a_case_gives_rows_of_the_published_shape(spark):
    said: list[str] = []
    rows = run_where(quick=True, cases=["correlated"], log=said.append)
    assert len(rows) == len(correlated.DESIGNS)
    for row in rows:
        assert set(row) == KEYS
        assert row["case"] == "correlated"
        assert row["met"] == (row["value"] <= 1.05)
        assert row["details"]["command"] == "querymesh bench where --quick"
        assert row["details"]["mesh"]["evaluations"] >= row["details"]["bound"]["evaluations"]
    assert said


def test_an_unknown_case_names_those_there_are(spark):
    with pytest.raises(QueryMeshError, match=r"unknown case 'regexp'.*did you mean 'regex'"):
        run_where(cases=["regexp"])
    assert set(CASES) >= {"python", "regex", "correlated", "uniform", "real"}


def test_quick_is_smaller(spark):
    assert Bench(quick=True, start=lambda: spark).rows(100, 10) == 10
    assert Bench().rounds(9, 3) == 9
