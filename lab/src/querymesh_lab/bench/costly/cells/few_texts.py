"""400 rows with four distinct texts and a call of 50 ms, as somebody new tried it."""

from __future__ import annotations

import pyarrow as pa

from querymesh import Memo
from querymesh_lab.bench.costly import rivals
from querymesh_lab.bench.costly.cell import TASKS, Cell, Ground
from querymesh_lab.bench.costly.contest import Contest
from querymesh_lab.bench.costly.manners import Manners
from querymesh_lab.bench.costly.rivals import Question
from querymesh_lab.bench.finding import Finding

GROUP = "few texts"
ROWS, TEXTS = 400, 4
DELAY_S, QUICK_DELAY_S = 0.05, 0.005


def run(ground: Ground) -> list[Finding]:
    """Calls of each way to ask."""
    texts = [f"a text of kind {row % TEXTS}" for row in range(ROWS)]
    table = ground.stored(pa.table({"id": range(ROWS), "text": texts}))
    question = Question(ground.endpoint.address, "share 50 kind", ("text",))
    delay_s = QUICK_DELAY_S if ground.bench.quick else DELAY_S
    memo = Memo(path=ground.memo_folder())
    everybody = {
        rivals.UDF: lambda df: rivals.udf(df, question),
        rivals.WHERE: lambda df: rivals.where(df, question.predicate(concurrency=1)),
        rivals.SHARED: lambda df: rivals.where(df, question.predicate(memo=memo)),
        "where, another run": lambda df: rivals.where(df, question.predicate(memo=memo)),
    }
    contest = Contest(ground, table, Manners(delay_s=delay_s), everybody)
    found = {name: contest.once(name) for name in everybody}
    if len(set(found.values())) > 1:
        raise AssertionError(f"the answers differ: {found}")
    details = {"group": GROUP, "explained": contest.explained[rivals.WHERE]}

    def calls(name: str, words: str, most: float | None) -> Finding:
        claim, count = f"{ROWS} rows, {TEXTS} texts: calls, {words}", contest.most_calls(name)
        if most is None:
            return Finding("four texts", claim, count, "calls", details={"group": GROUP})
        return Finding("four texts", claim, count, "calls", "at most", most, details)

    return [
        calls(rivals.UDF, "plain Spark", None),
        calls(rivals.WHERE, "where with its defaults", TEXTS * TASKS),
        calls(rivals.SHARED, "where with a shared memo", TEXTS),
        calls("where, another run", "a second run with the same memo", 0),
    ]


CASES = (Cell(GROUP, "four texts", run),)
