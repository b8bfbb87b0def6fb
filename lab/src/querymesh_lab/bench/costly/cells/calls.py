"""Who asks least, and who is done first: real rows with repeats, calls of 1, 10 and 50 ms.

The bound is what a clairvoyant would ask: every distinct input once. Of a single question no exact
order can do with less.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame

from querymesh import Memo
from querymesh_lab.bench.costly import inputs, rivals
from querymesh_lab.bench.costly.cell import TASKS, Cell, Ground
from querymesh_lab.bench.costly.contest import Build, Contest
from querymesh_lab.bench.costly.manners import Manners
from querymesh_lab.bench.costly.rivals import Question
from querymesh_lab.bench.finding import Finding, timing_details
from querymesh_lab.bench.measure import Timing

GROUP = "calls"
ROWS = {1: 8_000, 10: 2_400, 50: 640}
"""By milliseconds a call: plain Spark, two tasks that ask one row after the other, takes 16 s of
calls at most."""

QUICK_ROWS = 120
WARM_ROWS = 64
ROUNDS = 3
TARGET_MS = 50
TIMES_FASTER = 10.0


def builds(question: Question, ground: Ground) -> dict[str, Build]:
    """Everybody who competes."""

    def at_once(df: DataFrame) -> DataFrame:
        return rivals.udf(df, question)

    def shared(df: DataFrame) -> DataFrame:
        memo = Memo(path=ground.memo_folder())
        return rivals.where(df, question.predicate(memo=memo))

    return {
        rivals.UDF: partial(rivals.udf, question=question),
        rivals.PANDAS: partial(rivals.pandas_udf, question=question),
        rivals.SPARK_AT_ONCE: at_once,
        rivals.EXPERT: partial(rivals.expert, question=question),
        rivals.WHERE: lambda df: rivals.where(df, question.predicate()),
        rivals.SHARED: shared,
    }


class CallsContest(Contest):
    """One of the rivals needs a setting of the session while it runs."""

    def once(self, name: str) -> int:
        """One run: how many rows it found."""
        if name != rivals.SPARK_AT_ONCE:
            return super().once(name)
        with rivals.spark_at_once(self.ground.bench.session, rivals.AT_ONCE):
            return super().once(name)


def run(asked: inputs.Asked, delay_ms: int, ground: Ground) -> list[Finding]:
    """One data set at one price of a call."""
    bench = ground.bench
    table = asked.rows(bench.rows(ROWS[delay_ms], QUICK_ROWS))
    kinds = inputs.distinct(asked.inputs(table))
    question = Question(ground.endpoint.address, asked.question, asked.columns)
    manners = Manners(delay_s=delay_ms / 1000)
    everybody = builds(question, ground)
    if not bench.quick:
        warm = CallsContest(ground, ground.stored(table.slice(0, WARM_ROWS)), manners, everybody)
        for name in everybody:
            warm.once(name)
    contest = CallsContest(ground, ground.stored(table), manners, everybody)
    timing = contest.interleaved(bench.rounds(ROUNDS, 1), control=rivals.EXPERT)
    name = f"{asked.name} {delay_ms} ms"
    if timing.answer != asked.found(table):
        raise AssertionError(f"{name}: {timing.answer} rows found, not {asked.found(table)}")
    details = {
        "group": GROUP,
        "rows": table.num_rows,
        "distinct": kinds,
        "calls": {who: contest.median_calls(who) for who in everybody},
        "most_at_once": {who: contest.counts[who][-1].most_at_once for who in everybody},
        **timing_details(timing),
    }
    explained = {"explained": contest.explained[rivals.WHERE]}
    return [
        *_by_time(name, delay_ms, timing, details),
        Finding(name, "calls of where with a shared memo over distinct inputs",
                contest.most_calls(rivals.SHARED) / kinds, "×", "at most", 1.0, {"group": GROUP}),
        Finding(name, "calls of where over distinct inputs",
                contest.most_calls(rivals.WHERE) / kinds, "×", "at most", float(TASKS),
                {"group": GROUP, **explained}),
    ]  # fmt: skip


def _by_time(name: str, delay_ms: int, timing: Timing, details: dict[str, object]) -> list[Finding]:
    plain = timing.ratio(rivals.UDF, rivals.WHERE)
    claim = "plain udf over where"
    fastest = timing.fastest(list(rivals.PLAIN[:-1]))
    first = (
        Finding(name, claim, plain, "×", "at least", TIMES_FASTER, details, timed=True)
        if delay_ms == TARGET_MS
        else Finding(name, claim, plain, "×", details=details)
    )
    group = {"group": GROUP, "a_a": details["a_a"]}
    return [
        first,
        Finding(name, "hand-written over where", timing.ratio(rivals.EXPERT, rivals.WHERE), "×",
                "at least", 1.0, group, timed=True),
        Finding(name, f"Spark's own best form ({fastest}) over where",
                timing.ratio(fastest, rivals.WHERE), "×", details=group),
    ]  # fmt: skip


CASES = tuple(
    Cell(GROUP, f"{asked.name} {delay_ms} ms", partial(run, asked, delay_ms))
    for asked in inputs.ASKED
    for delay_ms in ROWS
)
