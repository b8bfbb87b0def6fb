"""Decimals and times mean on a stream what they mean in `df.filter`: `where` on odd values."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import querymesh as qm
from equivalence import as_multiset

ROWS, FILES = 600, 3
BIG = 2**53

DECIMAL = [
    ["wide * 2 > 9007199254740993", "price + wide > 9007199254740993.55"],
    ["wide = whole + 1", "price % 3 >= 0.01", "abs(price) < 500.125"],
    ["price / 7 > 1.428571", "CAST(price AS DECIMAL(10, 1)) = round(price, 1)"],
    ["coalesce(price, wide) <> 0", "price * price < 90000.25", "-price < 100"],
    ["whole > 9007199254740992.5", "CASE WHEN price > 0 THEN wide ELSE whole END > 1"],
    ["price IN (0.10, 12.34, -7.77) OR wide > 9007199254740992", "NOT (price < 0.1)"],
]
TEMPORAL = [
    ["year(day) = 2024 OR month(day) = 2", "day + INTERVAL '1' DAY > DATE '2024-02-29'"],
    ["at > TIMESTAMP '2024-03-31 01:30:00' OR hour(at) = 2", "day <> CAST(at AS DATE)"],
    ["local > TIMESTAMP_NTZ '2024-03-31 02:30:00' OR minute(local) > 30", "local IS NOT NULL"],
    ["datediff(DATE '2024-03-01', day) > 0", "date_trunc('HOUR', at) < at"],
    [
        "day = last_day(day) OR dayofweek(day) = 1",
        "at - INTERVAL '1' HOUR < TIMESTAMP '2024-04-01'",
    ],
    ["to_date(string(day)) = day", "unix_timestamp(at) % 120 = 0 OR at IS NULL"],
]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Values at the edges: NULLs, integers that no double holds, the hour that summer skips."""
    folder, rng = tmp_path_factory.mktemp("meaning") / "in", np.random.default_rng(11)
    folder.mkdir()
    cents = [0, 10, 1234, -777, 1, 30025, -30025, 50012, 99999]
    price = [None if k % 11 == 0 else Decimal(int(rng.choice(cents)) + k % 3) / 100
             for k in range(ROWS)]  # fmt: skip
    whole = [None if k % 13 == 0 else BIG + int(rng.integers(-2, 3)) for k in range(ROWS)]
    wide = [None if w is None else Decimal(w + k % 3) for k, w in enumerate(whole)]
    spring = dt.datetime(2024, 3, 31, 0, 45)
    local = [None if k % 7 == 0 else spring + dt.timedelta(minutes=int(rng.integers(0, 200)))
             for k in range(ROWS)]  # fmt: skip
    at = [None if each is None else each.replace(tzinfo=dt.UTC) for each in local]
    first = dt.date(2024, 2, 27)
    day = [None if k % 9 == 0 else first + dt.timedelta(days=int(rng.integers(0, 40)))
           for k in range(ROWS)]  # fmt: skip
    table = pa.table(
        {
            "id": list(range(ROWS)),
            "price": pa.array(price, pa.decimal128(12, 2)),
            "wide": pa.array(wide, pa.decimal128(38, 0)),
            "whole": pa.array(whole, pa.int64()),
            "at": pa.array(at, pa.timestamp("us", "UTC")),
            "local": pa.array(local, pa.timestamp("us")),
            "day": pa.array(day, pa.date32()),
        }
    )
    for number in range(FILES):
        part = table.slice(number * ROWS // FILES, ROWS // FILES)
        pq.write_table(part, folder / f"part-{number}.parquet")
    return str(folder)


@qm.predicate(columns=["id"])
def not_by_nine(ids):
    return [each % 9 != 0 for each in ids.to_pylist()]


@pytest.mark.parametrize("conditions", DECIMAL + TEMPORAL, ids=lambda each: each[0][:30])
def test_decimal_and_temporal_conditions_keep_on_a_stream_what_filter_keeps(
    spark, stored, tmp_path, conditions
):
    frame = spark.read.parquet(stored)
    stream = spark.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1).parquet(stored)
    # Learned from the first file: the others meet a mesh.
    policy = qm.policies.Mesh(sample_rows=100)
    out = stream.transform(qm.where(not_by_nine, *conditions, policy=policy))
    writer = out.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    assert writer.trigger(availableNow=True).start().awaitTermination(120)
    found = as_multiset(spark.read.parquet(str(tmp_path / "out")).toArrow())
    plain = frame.filter("id % 9 <> 0").filter(" AND ".join(f"({each})" for each in conditions))
    expected = as_multiset(plain.toArrow())
    assert 0 < len(expected) < ROWS * 8 // 9, "a test that nothing or all passes tells little"
    assert found == expected


@pytest.mark.parametrize("kind", ["decimal", "temporal"])
def test_on_a_stream_such_conditions_are_operators_in_python(spark, stored, kind):
    frame = spark.read.parquet(stored)
    stream = spark.readStream.schema(frame.schema).parquet(stored)
    inside = set()
    for conditions in DECIMAL if kind == "decimal" else TEMPORAL:
        run = qm.inspect(stream.transform(qm.where(not_by_nine, *conditions)))
        inside |= {operator.name for operator in run.mesh.operators}
    assert len(inside) >= 4, f"{inside}: else Spark would be compared with itself"
