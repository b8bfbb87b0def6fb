"""Who asks the endpoint: plain Spark in its forms, what an expert would write, and `qm.where`.

All ask with one input a call. `at_once` is how many calls a task may have in flight.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BooleanType

import querymesh as qm
from querymesh_lab.bench.costly.client import ask

CONCURRENCY_LEVEL = "spark.sql.execution.pythonUDF.arrow.concurrency.level"
UDF, PANDAS, SPARK_AT_ONCE = "udf", "pandas_udf", "udf, 16 at once"
EXPERT = "hand-written"
WHERE, SHARED = "where", "where, shared memo"
PLAIN = (UDF, PANDAS, SPARK_AT_ONCE, EXPERT)
AT_ONCE = 16
LONGEST_MEMO = 100_000

Asker = Callable[..., Any]


@dataclass(frozen=True)
class Question:
    """One question to one endpoint about some columns."""

    address: str
    question: str
    columns: tuple[str, ...]
    at_once: int = AT_ONCE

    def asker(self) -> Asker:
        """A function of the values of one row."""
        address, question = self.address, self.question

        def asked(*values: Any) -> Any:
            return ask(address, question, [values[0] if len(values) == 1 else list(values)])[0]

        return asked

    def predicate(self, **options: Any) -> qm.Predicate:
        """The same as `where` takes it."""
        settings: dict[str, Any] = {
            "columns": self.columns, "name": self.question.split()[0], "vectorised": False,
            "concurrency": self.at_once, **options,
        }  # fmt: skip
        return qm.predicate(self.asker(), **settings)


def udf(df: DataFrame, question: Question) -> DataFrame:
    """The form that PySpark's manual shows first."""
    function: Any = F.udf(question.asker(), BooleanType())
    return df.filter(function(*map(F.col, question.columns)))


def pandas_udf(df: DataFrame, question: Question) -> DataFrame:
    """The same over Series: a call for each value of each."""
    asker = question.asker()

    def over_series(*series: Any) -> Any:
        values = zip(*(each.tolist() for each in series), strict=True)
        return type(series[0])([asker(*row) for row in values])

    pd: Any = __import__("pandas")
    over_series.__annotations__ = {"series": pd.Series, "return": pd.Series}
    function: Any = F
    return df.filter(function.pandas_udf(over_series, BooleanType())(*question.columns))


def expert(df: DataFrame, question: Question) -> DataFrame:
    """A cache for each worker, equal inputs of a batch once, and a pool of threads."""
    asker, columns, at_once = question.asker(), list(question.columns), question.at_once
    job = uuid.uuid4().hex

    def over(batches: Iterator[Any]) -> Iterator[Any]:
        known = worker_cache(job)
        with ThreadPoolExecutor(at_once) as pool:
            for batch in batches:
                inputs = list(zip(*(batch[name].tolist() for name in columns), strict=True))
                new = [each for each in dict.fromkeys(inputs) if each not in known]
                answers = dict(zip(new, pool.map(lambda row: asker(*row), new), strict=True))
                keep = [known[each] if each in known else answers[each] for each in inputs]
                known.update(answers)
                while len(known) > LONGEST_MEMO:
                    known.popitem(last=False)
                yield batch[keep]

    return df.mapInPandas(over, df.schema)


_caches: dict[str, OrderedDict[Any, Any]] = {}


def worker_cache(job: str) -> OrderedDict[Any, Any]:
    """What this worker has asked in a job; of earlier jobs nothing is kept."""
    if job not in _caches:
        _caches.clear()
        _caches[job] = OrderedDict()
    return _caches[job]


def where(df: DataFrame, *predicates: qm.Predicate | str, **options: Any) -> DataFrame:
    """What a user of QueryMesh writes."""
    return df.transform(qm.where(*predicates, **options))


@contextmanager
def spark_at_once(session: SparkSession, level: int) -> Iterator[None]:
    """Spark's own way to have several calls in flight: a setting of the session."""
    conf = session.conf
    before = conf.get(CONCURRENCY_LEVEL, None)
    conf.set(CONCURRENCY_LEVEL, str(level))
    try:
        yield
    finally:
        if before is None:
            conf.unset(CONCURRENCY_LEVEL)
        else:
            conf.set(CONCURRENCY_LEVEL, before)
