"""Nested events, what Spark and we both call on them, and the comparison of the two."""

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc

import querymesh as qm
from equivalence import as_multiset

SCHEMA = (
    "id BIGINT, payload STRUCT<size: INT, user: STRING, tags: ARRAY<INT>>, arr ARRAY<INT>, "
    "attributes MAP<STRING, INT>, body STRING, day STRING, number STRING, value DOUBLE, "
    "ts TIMESTAMP"
)


def event(i):
    return {
        "id": i,
        "payload": None
        if i % 13 == 0
        else {"size": i % 7, "user": f"u{i % 5}", "tags": [i % 3, i % 4]},
        "arr": [i % 5, i % 6],
        "attributes": {"a": i % 9},
        "body": f'{{"x": {i % 9}, "y": "k{i % 3}"}}',
        "day": f"2024-01-{1 + i % 28:02d}",
        "number": f"{i % 50}.{i % 10}" if i % 11 else "none",
        "value": i * 1.5,
        "ts": dt.datetime(2024, 1, 1) + dt.timedelta(seconds=i),
    }


@qm.predicate
def even(x):
    return pc.equal(pc.bit_wise_and(x, 1), 0)


@qm.function(returns=pa.int64())
def twice(x):
    return pc.multiply(x, pa.scalar(2, pa.int64()))


WINDOWED = (
    "FROM Event e [RANGE 60 SECONDS], Click c [RANGE 30 SECONDS] WHERE e.payload.size = c.arr[1]"
)
PLAIN = (
    "FROM Event e, Click c WHERE greatest(e.ts, c.ts) - e.ts <= interval 60 seconds "
    "AND greatest(e.ts, c.ts) - c.ts <= interval 30 seconds AND e.payload.size = c.arr[1]"
)
"""A window join of two events, as we write it and as Spark does."""

FUNCTIONS = {"even": even, "twice": twice}


def agrees(spark, tables, sql, *, plain=None, time=None, functions=None, **options):
    """The run of the query, once its result is what Spark's own SQL gives."""
    asked = qm.query(sql, time=time, functions=functions)
    names = {relation.name for relation in asked.relations}
    out = qm.run(asked, {name: tables[name] for name in names}, **options)
    expected = spark.sql(plain or sql)
    assert out.columns == expected.columns
    types = [field.dataType for field in expected.schema]
    assert [field.dataType for field in out.schema] == types
    found = as_multiset(out.toArrow())
    assert found == as_multiset(expected.toArrow())
    assert found.total() > 0, "a comparison of nothing with nothing"
    return qm.inspect(out)
