"""Figures that need no Spark start no JVM: here whoever asks for a session fails.

Those of CBR and OM run in their own tests, with a `Bench` that refuses a session as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from querymesh.errors import SetupError
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.measure import silent
from querymesh_lab.papers import papers
from querymesh_lab.papers.amri import amri_lab, comparison_causes, index_rivals
from querymesh_lab.papers.qm import search_time, starts
from querymesh_lab.papers.qm.generated import SearchTime, time_search
from querymesh_lab.papers.qm.ten_way import TenWay

ON_SPARK = {
    "qm": {"10", "grid-spark", "11a-look-ups", "11b-look-ups"},
    "rate": {"1", "7-10", "12-15"},
}
"""The figures that time whole Spark jobs."""

WITHOUT_SPARK = [
    (paper, figure)
    for paper in ("qm", "amri", "rate")
    for figure in papers.PAPERS[paper]
    if figure not in ON_SPARK.get(paper, ())
]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Data even smaller than those of a quick run: only who asks for a session is looked at."""
    for module in (index_rivals, amri_lab, comparison_causes):
        monkeypatch.setattr(module, "QUICK", 200)
    monkeypatch.setattr(search_time, "TEN", 3)
    monkeypatch.setattr(search_time, "SAMPLE", 300)
    monkeypatch.setattr(search_time, "time_search", _time_shorter_search)
    monkeypatch.setattr(starts, "UNSEEN", 300)
    monkeypatch.setattr(starts, "SAMPLE", 300)
    monkeypatch.setattr(starts, "FEW_TUPLES", 4)
    for module in (search_time, starts):
        small = lambda seed=0: TenWay(symbols=50, partners=3, seed=seed)  # noqa: E731
        monkeypatch.setattr(module, "TenWay", small)
    for cached in (index_rivals.synthetic, amri_lab.lab_course):
        cached.cache_clear()
    yield
    for cached in (index_rivals.synthetic, amri_lab.lab_course):
        cached.cache_clear()


def _time_shorter_search(tuples: int, operators: int, **settings: Any) -> SearchTime:
    return time_search(tuples // 2, operators, **settings)


@pytest.fixture
def no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object, **__: object) -> SparkSession:
        raise AssertionError("a Spark session was started")

    monkeypatch.setattr(papers, "local_session", start)


@pytest.mark.parametrize(("paper", "figure"), WITHOUT_SPARK)
def test_a_figure_that_needs_no_spark_starts_none(
    paper: str, figure: str, tiny: None, no_jvm: None
) -> None:
    rows = papers.reproduce(paper, True, None, silent, [figure])
    assert rows
    assert {row["paper"] for row in rows} == {paper}


def test_neither_does_the_command_for_the_others(no_jvm: None) -> None:
    assert papers.reproduce("om", True, None, silent, ["3.2"])


def test_a_figure_that_needs_spark_asks_for_it(no_jvm: None) -> None:
    with pytest.raises(AssertionError, match="a Spark session was started"):
        papers.reproduce("rate", True, None, silent, ["1"])


def test_a_session_is_started_once_and_by_the_first_who_asks() -> None:
    started: list[object] = []

    def start() -> object:
        started.append(object())
        return started[-1]

    bench = Bench(start=start)
    assert not started
    assert bench.session is bench.session
    assert len(started) == 1


def test_a_bench_without_spark_refuses_a_session() -> None:
    with pytest.raises(SetupError, match="without Spark"):
        _ = Bench().session
