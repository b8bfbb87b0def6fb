from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from command_line import fails, invoke
from querymesh.report.doctor import Check

SQL = """SELECT s.symbol, s.price, n.headline FROM Stock s, News n
WHERE s.sector = n.sector AND calm(s.note) AND s.price < 90;"""
FUNCTIONS = """
import pyarrow.compute as pc
import querymesh as qm

@qm.predicate(columns=["note"])
def calm(note):
    return pc.not_equal(note, "storm")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A query, its functions, 600 stocks in two files, and the news."""
    (tmp_path / "query.sql").write_text(SQL, encoding="utf-8")
    (tmp_path / "calls.py").write_text(FUNCTIONS, encoding="utf-8")
    rng = np.random.default_rng(0)
    (tmp_path / "stock").mkdir()
    for part in range(2):
        table = pa.table(
            {
                "symbol": [f"S{i}" for i in rng.integers(50, size=300)],
                "sector": rng.choice(["farm", "tech", "bank"], 300),
                "note": rng.choice(["calm", "storm"], 300),
                "price": rng.uniform(1, 200, 300),
            }
        )
        pq.write_table(table, tmp_path / "stock" / f"{part}.parquet")
    news = "sector,headline\nfarm,rain\nfarm,sun\ntech,chips\n"
    (tmp_path / "news.csv").write_text(news, encoding="utf-8")
    return tmp_path


def inputs(folder: Path, option: str = "--input") -> list[str]:
    return [
        *(option, f"Stock={folder / 'stock'}"),
        *(option, f"News={folder / 'news.csv'}"),
        *("--functions", str(folder / "calls.py")),
    ]


def expected(folder: Path) -> int:
    stock = pq.read_table(folder / "stock").to_pylist()
    matches = {"farm": 2, "tech": 1, "bank": 0}
    return sum(
        matches[row["sector"]] for row in stock if row["note"] != "storm" and row["price"] < 90
    )


def test_help_names_every_command() -> None:
    text = invoke("--help").output
    assert all(name in text for name in ("demo", "run", "explain", "advise", "bench", "doctor"))


def test_an_input_without_a_name_is_wrong_usage(folder: Path) -> None:
    result = invoke("run", folder / "query.sql", "--input", "stock", "--output", folder / "out")
    fails(result, 2, "Name=path")


def test_an_input_given_twice_is_wrong_usage(folder: Path) -> None:
    twice = ["--sample", "A=x.csv", "--sample", "A=y.csv"]
    fails(invoke("explain", folder / "query.sql", *twice), 2, "twice")


def test_a_missing_query_file_is_wrong_usage(folder: Path) -> None:
    fails(invoke("explain", folder / "no.sql", "--sample", "A=b"), 2, "no.sql")


def test_a_stream_without_a_checkpoint_is_wrong_usage(folder: Path) -> None:
    out = ("--output", folder / "out")
    result = invoke("run", folder / "query.sql", *inputs(folder), *out, "--stream")
    fails(result, 2, "--checkpoint")


def test_sql_that_does_not_parse_is_one_message(folder: Path) -> None:
    (folder / "query.sql").write_text("SELECT FROM WHERE", encoding="utf-8")
    fails(invoke("explain", folder / "query.sql", *inputs(folder, "--sample")), 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("functions = 3", ["dict"]),
        ("x = 1", ["no predicates"]),
        ("raise RuntimeError('boom')", ["cannot load", "boom"]),
    ],
)
def test_a_functions_file_that_is_no_use_says_why(
    folder: Path, text: str, words: list[str]
) -> None:
    (folder / "calls.py").write_text(text, encoding="utf-8")
    result = invoke("explain", folder / "query.sql", *inputs(folder, "--sample"))
    fails(result, 1, *words)


def test_a_missing_functions_module_is_named(folder: Path) -> None:
    words = ["--sample", "Stock=x.csv", "--functions", "no_such_module_at_all"]
    fails(invoke("explain", folder / "query.sql", *words), 1, "no_such_module_at_all")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("Stock={0}/gone.parquet", ["no file or directory", "gone.parquet"]),
        ("Stock={0}/calls.py", [".parquet", ".csv", ".json"]),
        ("Stock={0}", ["cannot tell the format"]),
        ("Stocks={0}/stock", ["Stock"]),
    ],
)
def test_an_input_that_cannot_be_read_says_what_can(
    spark: SparkSession, folder: Path, path: str, words: list[str]
) -> None:
    given = [
        *("--sample", path.format(folder)),
        *("--sample", f"News={folder / 'news.csv'}"),
        *("--functions", str(folder / "calls.py")),
    ]
    fails(invoke("explain", folder / "query.sql", *given), 1, *words)


def test_explain_shows_the_mesh_and_saves_it_for_run(spark: SparkSession, folder: Path) -> None:
    page, mesh, out = folder / "mesh.html", folder / "mesh.json", folder / "out.parquet"
    result = invoke(
        *("explain", folder / "query.sql", *inputs(folder, "--sample")),
        *("--html", page, "--save", mesh),
    )
    assert result.exit_code == 0, result.output
    assert "over 3 operators, learned from 600 sampled rows" in result.output
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    ran = invoke("run", folder / "query.sql", *inputs(folder), "--output", out, "--mesh", mesh)
    assert ran.exit_code == 0, ran.output
    cheap = sum(row["price"] < 90 for row in pq.read_table(folder / "stock").to_pylist())
    assert f"{cheap} rows in" in ran.output, "Spark has dropped the others already"
    assert pq.read_table(out).num_rows == expected(folder)


def test_run_refuses_to_overwrite_and_to_guess_a_format(folder: Path) -> None:
    out = folder / "out.parquet"
    out.mkdir()
    asked = ("run", folder / "query.sql", *inputs(folder), "--output")
    fails(invoke(*asked, out), 1, "exists already")
    fails(invoke(*asked, folder / "out.xlsx"), 1, ".xlsx", ".parquet")


def test_a_mesh_of_another_query_is_refused(spark: SparkSession, folder: Path) -> None:
    mesh = folder / "mesh.json"
    explain = ("explain", folder / "query.sql", *inputs(folder, "--sample"), "--save", mesh)
    assert invoke(*explain).exit_code == 0
    (folder / "query.sql").write_text(SQL.replace("90", "91"), encoding="utf-8")
    result = invoke(
        *("run", folder / "query.sql", *inputs(folder)),
        *("--output", folder / "out", "--mesh", mesh),
    )
    fails(result, 1, "another query")


def test_run_reads_a_directory_as_a_stream(spark: SparkSession, folder: Path) -> None:
    out = folder / "out"
    asked = ("run", folder / "query.sql", *inputs(folder), "--output", out)
    result = invoke(*asked, "--stream", "--checkpoint", folder / "checkpoint")
    assert result.exit_code == 0, result.output
    assert spark.read.parquet(str(out)).count() == expected(folder)


@pytest.mark.parametrize("way", [("eddy",), ("cbr", "--stream", "--checkpoint", "checkpoint")])
def test_run_tells_what_a_policy_has_learned_on_the_way(
    spark: SparkSession, folder: Path, way: tuple[str, ...]
) -> None:
    out = folder / "out"
    policy, *stream = [str(folder / word) if word == "checkpoint" else word for word in way]
    asked = ("run", folder / "query.sql", *inputs(folder), "--output", out)
    result = invoke(*asked, "--policy", policy, *stream)
    assert result.exit_code == 0, result.output
    assert f"policy {policy}" in result.output
    assert "routing calls" in result.output
    assert spark.read.parquet(str(out)).count() == expected(folder)


def test_a_predicate_that_raises_in_a_task_is_told_without_spark_around_it(
    spark: SparkSession, folder: Path
) -> None:
    mesh = folder / "mesh.json"
    explain = ("explain", folder / "query.sql", *inputs(folder, "--sample"), "--save", mesh)
    assert invoke(*explain).exit_code == 0
    text = FUNCTIONS.replace('return pc.not_equal(note, "storm")', 'raise OSError("no line")')
    (folder / "calls.py").write_text(text, encoding="utf-8")
    ways = ([], ["--mesh", mesh])  # it raises while training on the driver, or in a Spark task
    for number, way in enumerate(ways):
        out = ("--output", folder / f"out{number}")
        result = invoke("run", folder / "query.sql", *inputs(folder), *out, *way)
        assert result.exit_code == 1, result.output
        assert "predicate calm" in result.stderr
        assert "OSError: no line" in result.stderr
        assert "org.apache.spark" not in result.stderr


JOIN = """SELECT a.id AS a, b.id AS b, c.id AS c FROM A a [RANGE 4 SECONDS],
B b [RANGE 4 SECONDS], C c [RANGE 4 SECONDS] WHERE a.k = b.k AND b.k = c.k"""


@pytest.fixture
def streams(tmp_path: Path) -> list[str | Path]:
    """A join of three streams of files, as the words that run it."""
    (tmp_path / "join.sql").write_text(JOIN, encoding="utf-8")
    words: list[str | Path] = ["run", tmp_path / "join.sql", "--time", "ts"]
    words += ["--output", tmp_path / "out.parquet"]
    for name in "ABC":
        table = pa.table({"ts": pa.array(range(0, 9_000_000, 100_000), pa.timestamp("us", "UTC")),
                          "id": range(90), "k": [i % 7 for i in range(90)]})  # fmt: skip
        (tmp_path / name).mkdir()
        pq.write_table(table, tmp_path / name / "0.parquet")
        words += ["--input", f"{name}={tmp_path / name}"]
    return words


def test_run_ends_with_what_the_planner_knew_and_chose(
    spark: SparkSession, streams: list[str | Path]
) -> None:
    result = invoke(*streams, "--policy", "chart", "--weights", "0.2,0.8")
    assert result.exit_code == 0, result.output
    assert "policy chart: w_r 0.2 / output rate + w_m 0.8 * memory" in result.output
    assert "λ-λ chart: 64,000 regions" in result.output


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ("0,0", "both 0"),
        ("-1,1", "the weight of rate must be a finite number from 0 on, not -1"),
        ("0.4", "weights are two numbers"),
        ("much,little", "two numbers with a comma between them, as 0.4,0.6"),
    ],
)
def test_wrong_weights_are_one_message(
    spark: SparkSession, streams: list[str | Path], weights: str, words: str
) -> None:
    fails(invoke(*streams, "--policy", "chart", f"--weights={weights}"), 1, words)


def test_weights_of_another_policy_are_one_message(
    spark: SparkSession, streams: list[str | Path]
) -> None:
    fails(invoke(*streams, "--weights", "0.4,0.6"), 1, "--weights is of policy chart")


def test_doctor_ends_well_when_all_is_well(spark: SparkSession) -> None:
    result = invoke("doctor")
    assert result.exit_code == 0, result.output
    assert "mapInArrow gave the right sum" in result.output
    assert "problem" not in result.output


def test_doctor_shows_a_problem_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Check("java", "none was found", "install a JDK")]
    monkeypatch.setattr("querymesh.report.doctor.checks", lambda: iter(found))
    fails(invoke("doctor"), 1, "problem", "java", "remedy: install a JDK")


def test_how_to_search_can_be_said_and_a_strategy_that_is_not_there_is_named(
    spark: SparkSession, folder: Path
) -> None:
    query = folder / "query.sql"
    said = ("--preset", "table-1", "--search", "simulated-annealing", "--tolerance", "0.5")
    result = invoke("explain", query, *inputs(folder, "--sample"), *said)
    assert result.exit_code == 0, result.output
    assert "over 3 operators, learned from 600 sampled rows" in result.output
    wrong = invoke("explain", query, *inputs(folder, "--sample"), "--search", "annealing")
    fails(wrong, 1, "unknown search 'annealing'", "simulated-annealing", "optimal")
    wrong = invoke("explain", query, *inputs(folder, "--sample"), "--tolerance", "-1")
    fails(wrong, 1, "tolerance is a share from 0")
    wrong = invoke("explain", query, *inputs(folder, "--sample"), "--preset", "table-2")
    fails(wrong, 1, "unknown preset 'table-2'", "table-1, table-3")
