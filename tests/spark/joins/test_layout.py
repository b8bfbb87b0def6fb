import pickle
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from querymesh.errors import SchemaError, UnsupportedError
from querymesh.fabric.join.arrivals import in_order
from querymesh.mesh.hypercube import Dimension, Hypercube, join_dimensions, rows_of
from querymesh.optimize.shards.shares import choose_shares
from querymesh.runtime.task.slots import STREAM_BITS, TAG, shard_numbers, stream_numbers
from querymesh.spark.joins.layout import StreamInput, shard_layout

SHAPES = {
    "common key": {"k": "abc"},
    "chain": {"x": "ab", "y": "bc"},
    "star": {"w": "ab", "x": "ac", "y": "ad"},
    "clique": {f"{s}{t}": s + t for s, t in combinations("abcd", 2)},
    "comparison": {},
}
START = datetime(2026, 3, 1, tzinfo=UTC)


def streams_of(classes):
    return sorted({s for owners in classes.values() for s in owners}) or ["a", "b"]


def attributes(stream, classes):
    return [name for name, owners in classes.items() if stream in owners]


def rows_for(stream, classes, rows, rng, values=3):
    """An id, and for each class that the stream has an attribute of, one with few values."""
    columns = {"id": np.arange(rows)}
    for name in attributes(stream, classes):
        columns[name] = rng.integers(0, values, rows)
    return pa.table(columns)


def inputs_for(spark, tables, classes):
    return [
        StreamInput(
            stream,
            spark.createDataFrame(table),
            table.column_names,
            {name: name for name in attributes(stream, classes)},
        )
        for stream, table in tables.items()
    ]


def cube_for(classes, shards):
    streams = streams_of(classes)
    return choose_shares(join_dimensions(streams, classes), dict.fromkeys(streams, 1.0), shards)


def collected(laid):
    """All rows as one batch, with the partition that each was in."""
    table = laid.withColumn("partition", F.spark_partition_id()).toArrow().combine_chunks()
    return pa.RecordBatch.from_arrays(
        [column.chunk(0) if column.num_chunks else pa.array([], column.type) for column in table],
        schema=table.schema,
    )


def by_shard(laid, slots):
    """For each shard, the rows of each stream that are in it, as dicts."""
    batch = collected(laid)
    found = defaultdict(dict)
    for shard in np.unique(shard_numbers(batch)):
        here = batch.filter(pa.array(shard_numbers(batch) == shard))
        for number, rows in slots.unpack(here).items():
            found[int(shard)][slots.aliases[number]] = rows.to_pylist()
    return found


def shards_of_ids(found, stream):
    """For each id of a stream, the shards it is in, once for each copy."""
    places = defaultdict(list)
    for shard, streams in found.items():
        for row in streams.get(stream, ()):
            places[row["id"]].append(shard)
    return places


@pytest.mark.parametrize("shards", [6])
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_that_match_meet_in_exactly_one_shard(spark, shape, shards):
    classes = SHAPES[shape]
    rng = np.random.default_rng(shards)
    tables = {s: rows_for(s, classes, 14, rng) for s in streams_of(classes)}
    cube = cube_for(classes, shards)
    found = by_shard(*shard_layout(inputs_for(spark, tables, classes), cube))
    places = {s: shards_of_ids(found, s) for s in tables}
    for stream, of_ids in places.items():
        assert sorted(of_ids) == list(range(14))
        assert {len(copies) for copies in of_ids.values()} == {cube.replication(stream)}
        assert {len(set(copies)) for copies in of_ids.values()} == {cube.replication(stream)}
    results = 0
    for rows in product(*(table.to_pylist() for table in tables.values())):
        values = [
            {r[name] for s, r in zip(tables, rows, strict=True) if s in owners}
            for name, owners in classes.items()
        ]
        if any(len(different) > 1 for different in values):
            continue
        results += 1
        meeting = [set(places[s][r["id"]]) for s, r in zip(tables, rows, strict=True)]
        assert len(set.intersection(*meeting)) == 1
    assert results > 5


def test_a_partition_holds_the_shard_of_its_number(spark):
    classes = SHAPES["chain"]
    tables = {s: rows_for(s, classes, 300, np.random.default_rng(1), 50) for s in "abc"}
    laid, _ = shard_layout(inputs_for(spark, tables, classes), cube_for(classes, 6))
    assert laid.rdd.getNumPartitions() == 6
    batch = collected(laid)
    assert batch.column("partition").to_pylist() == shard_numbers(batch).tolist()
    assert set(shard_numbers(batch).tolist()) == set(range(6))


def test_a_private_dimension_spreads_the_rows_of_its_stream(spark):
    tables = {s: rows_for(s, {}, 400, np.random.default_rng(2)) for s in "ab"}
    cube = Hypercube((rows_of("a"), rows_of("b")), (4, 1), 4)
    found = by_shard(*shard_layout(inputs_for(spark, tables, {}), cube))
    assert all(60 < len(found[shard]["a"]) < 140 for shard in range(4))
    assert all(len(found[shard]["b"]) == 400 for shard in range(4))


NANS = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001], np.uint64)
EQUAL_KEYS = {
    "zeros": ("double", [0.0, -0.0], [-0.0, 0.0]),
    "NaNs": ("double", NANS.view(np.float64), NANS[::-1].view(np.float64)),
    "floats": ("double", np.float32([0.5, -0.0, np.nan]), np.float64([0.5, 0.0, np.nan])),
    "integers": ("bigint", np.int8([-1, 7, 100]), np.int64([-1, 7, 100])),
    "decimals": (
        "decimal(12,3)",
        pa.array([Decimal("1.50"), Decimal("-2.00")], pa.decimal128(5, 2)),
        pa.array([Decimal("1.500"), Decimal("-2.000")], pa.decimal128(9, 3)),
    ),
    "texts": ("string", ["", "ä", "a\0b", "long " * 40], ["", "ä", "a\0b", "long " * 40]),
    "times": (
        "timestamp",
        pa.array([START], pa.timestamp("us", "UTC")),
        pa.array([START], pa.timestamp("us", "Asia/Tokyo")),
    ),
}


@pytest.mark.parametrize("kind", EQUAL_KEYS)
def test_keys_that_are_equal_as_the_common_type_meet(spark, kind):
    common, left, right = EQUAL_KEYS[kind]
    cube = Hypercube((Dimension("k", frozenset("ab")),), (13,), 13)
    inputs = [
        StreamInput(
            alias,
            spark.createDataFrame(pa.table({"id": range(len(keys)), "k": keys})),
            ["id", "k"],
            {"k": f"CAST(k AS {common})"},
        )
        for alias, keys in (("a", left), ("b", right))
    ]
    found = by_shard(*shard_layout(inputs, cube))
    a, b = (shards_of_ids(found, alias) for alias in "ab")
    assert len(a) == len(left)
    assert a == b


def test_rows_come_back_as_they_were_sent(spark):
    times = [START + timedelta(microseconds=k) for k in (0, 1, 5)]
    a = pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "id": [1, 2, None],
            "a.b": ["x", None, "z"],
            "n": pa.array([1, None, 3], pa.int32()),
            "tags": [["p", None], [], None],
            "at": [{"x": 1, "y": 0.5}, {"x": None, "y": 1.5}, None],
        }
    )
    b = pa.table(
        {
            "id": [7, 8],
            "more": [70, None],
            "ids": [[1, 2], None],
            "price": [0.5, None],
            "cost": pa.array([Decimal("1.5"), None], pa.decimal128(10, 2)),
            "when": pa.array([times[0], None], pa.timestamp("us", "UTC")),
            "local": pa.array([datetime(2026, 1, 1), None], pa.timestamp("us")),
        }
    )
    cube = Hypercube((rows_of("a"), rows_of("b")), (1, 1), 1)
    inputs = [
        StreamInput("a", spark.createDataFrame(a), a.column_names),
        StreamInput(
            "b",
            spark.createDataFrame(b).withColumn("local", F.col("local").cast("timestamp_ntz")),
            b.column_names[::-1],
        ),
    ]
    laid, slots = shard_layout(inputs, cube)
    parts = pickle.loads(pickle.dumps(slots)).unpack(collected(laid))
    assert parts[0].schema.names == a.column_names
    assert parts[1].schema.names == b.column_names[::-1]
    assert sorted(map(repr, parts[0].to_pylist())) == sorted(map(repr, a.to_pylist()))
    assert pa.Table.from_batches([parts[1]]).select(b.column_names).to_pylist() == b.to_pylist()
    assert parts[0].schema.field("ts").type == pa.timestamp("us", "UTC")
    assert parts[1].schema.field("local").type == pa.timestamp("us")


def test_columns_of_one_type_share_slots(spark):
    a = spark.createDataFrame([], "i bigint, j bigint, s string, t timestamp")
    b = spark.createDataFrame([], "s string, i bigint, j bigint, k bigint, d double")
    cube = Hypercube((rows_of("a"), rows_of("b")), (1, 1), 1)
    laid, slots = shard_layout(
        [StreamInput("a", a, a.columns), StreamInput("b", b, b.columns)], cube
    )
    kinds = Counter(name.rsplit("_", 1)[0] for name in laid.columns[1:])
    assert laid.columns[0] == TAG
    assert kinds == {"bigint": 3, "string": 1, "timestamp": 1, "double": 1}
    assert slots.slots[1] == ("string_0", "bigint_0", "bigint_1", "bigint_2", "double_0")


def test_types_that_only_look_alike_have_slots_of_their_own(spark):
    a = spark.createDataFrame([], "x decimal(10,2), y array<int>, z struct<p: int>")
    b = spark.createDataFrame([], "x decimal(12,2), y array<string>, z struct<q: int>")
    cube = Hypercube((rows_of("a"), rows_of("b")), (1, 1), 1)
    _, slots = shard_layout([StreamInput("a", a, a.columns), StreamInput("b", b, b.columns)], cube)
    assert slots.slots == (
        ("decimal_0", "array_0", "struct_0"),
        ("decimal_1", "array_1", "struct_1"),
    )


def test_a_batch_of_one_stream_is_unpacked_without_a_copy(spark):
    data = spark.range(10)
    laid, slots = shard_layout(
        [StreamInput("a", data, ["id"])], Hypercube((rows_of("a"),), (1,), 1)
    )
    batch = collected(laid)
    own = slots.unpack(batch)[0].column("id")
    assert own.buffers()[1].address == batch.column("bigint_0").buffers()[1].address
    assert slots.unpack(batch.slice(0, 0)) == {}


def test_rows_without_a_key_are_left_out_unless_they_count(spark):
    classes = SHAPES["chain"]
    b = pa.table({"id": [0, 1, 2, 3], "x": [1, None, 1, None], "y": [1, 1, None, None]})
    tables = {
        "a": pa.table({"id": [0], "x": [1]}),
        "b": b,
        "c": pa.table({"id": [0], "y": pa.array([None], pa.int64())}),
    }
    for shards in (1, 4):
        cube = cube_for(classes, shards)
        inputs = inputs_for(spark, tables, classes)
        kept = by_shard(*shard_layout(inputs, cube))
        assert {s: set(shards_of_ids(kept, s)) for s in "abc"} == {"a": {0}, "b": {0}, "c": set()}
        every = by_shard(*shard_layout(inputs, cube, drop_null_keys=False))
        assert set(shards_of_ids(every, "b")) == {0, 1, 2, 3}
        assert set(shards_of_ids(every, "c")) == {0}


def test_maps_and_variants_are_spread_as_text(spark):
    data = spark.range(200).selectExpr(
        "id",
        "map(id, 'x') AS m",
        "array(struct(map('k', id) AS deep)) AS d",
        "parse_json(concat('{\"i\": ', id, '}')) AS v",
    )
    cube = Hypercube((rows_of("a"),), (4,), 4)
    for columns in (["m"], ["d"], ["v"]):
        laid, _ = shard_layout([StreamInput("a", data, columns)], cube)
        counts = Counter(shard_numbers(collected(laid.select(TAG))).tolist())
        assert len(counts) == 4
        assert max(counts.values()) < 90


def test_a_batch_can_be_sorted_by_the_time_of_every_stream(spark):
    rng = np.random.default_rng(4)
    moments = pa.array(START.timestamp() * 1e6 + rng.permutation(100), pa.float64())
    times = moments.cast(pa.int64()).cast(pa.timestamp("us", "UTC"))
    a = pa.table({"k": rng.integers(0, 9, 50), "other": times[50:], "ts": times[:50]})
    b = pa.table({"at": times[50:], "k": rng.integers(0, 9, 50)})
    cube = Hypercube((Dimension("k", frozenset("ab")),), (2,), 2)
    inputs = [
        StreamInput("a", spark.createDataFrame(a), a.column_names, {"k": "k"}, time="ts"),
        StreamInput("b", spark.createDataFrame(b), b.column_names, {"k": "k"}, time="at"),
    ]
    laid, slots = shard_layout(inputs, cube, sort_by_time=True)
    assert slots.time_slot == "timestamp_0"
    rows = collected(laid)
    for partition in (0, 1):
        here = rows.filter(np.asarray(rows.column("partition")) == partition)
        seen = here.column("timestamp_0").to_pylist()
        assert len(seen) > 10
        assert seen == sorted(seen)


@pytest.mark.parametrize("timed", [True, False])
def test_a_batch_can_be_sorted_as_its_rows_count_as_arrived(spark, timed):
    rng = np.random.default_rng(6)
    tables = {}
    for stream, columns in {"a": ["id", "ts", "place"], "b": ["place", "ts"]}.items():
        drawn = {
            "id": np.arange(40),
            "ts": pa.array(rng.integers(0, 5, 40)).cast(pa.timestamp("us", "UTC")),
            "place": rng.permutation(60)[:40],
        }
        tables[stream] = pa.table({name: drawn[name] for name in columns})
    inputs = [
        StreamInput(
            stream,
            spark.createDataFrame(table).repartition(3),
            table.column_names,
            time="ts" if timed else None,
            place="place",
        )
        for stream, table in tables.items()
    ]
    cube = Hypercube((rows_of("a"),), (1,), 1)
    laid, slots = shard_layout(inputs, cube, sort_by_time=timed, sort_by_place=True)
    times = {"a": "ts", "b": "ts"} if timed else {}
    rows = collected(laid)
    assert arrival_order(slots, rows, times) == list(range(80))
    for cut in range(1, rows.num_rows, 7):
        assert [arrival_order(slots, part, times) for part in (rows[:cut], rows[cut:])] == [
            list(range(cut)),
            list(range(rows.num_rows - cut)),
        ]


def arrival_order(slots, rows, times):
    """For each row, as laid out, the serial that a step of just these rows would give it."""
    streams = {slots.aliases[number]: batch for number, batch in slots.unpack(rows).items()}
    places = {alias: np.asarray(batch.column("place")) for alias, batch in streams.items()}
    found = in_order(streams, {a: times[a] for a in streams if a in times}, places=places)
    ranks = {alias: iter(arrivals.serials.tolist()) for alias, arrivals in found.items()}
    return [next(ranks[slots.aliases[number]]) for number in stream_numbers(rows).tolist()]


def test_streams_are_laid_out_while_they_run(spark, tmp_path):
    classes = SHAPES["chain"]
    rng = np.random.default_rng(5)
    inputs, sent = [], {}
    for stream in "abc":
        (tmp_path / stream).mkdir()
        table = rows_for(stream, classes, 60, rng, 9)
        for k in range(2):
            pq.write_table(table.slice(30 * k, 30), tmp_path / stream / f"{k}.parquet")
        schema = spark.createDataFrame(table).schema
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        data = reader.parquet(str(tmp_path / stream))
        keys = {name: name for name in attributes(stream, classes)}
        inputs.append(StreamInput(stream, data, table.column_names, keys))
        sent[stream] = sorted(map(repr, table.to_pylist()))
    cube = cube_for(classes, 4)
    laid, slots = shard_layout(inputs, cube)
    assert laid.isStreaming
    running = (
        laid.withColumn("partition", F.spark_partition_id())
        .writeStream.format("memory")
        .queryName("laid_out")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert running.awaitTermination(120)
    out = spark.table("laid_out")
    assert out.where(f"partition <> shiftright({TAG}, {STREAM_BITS})").count() == 0
    for number, rows in slots.unpack(collected(out.drop("partition"))).items():
        stream = slots.aliases[number]
        once = Counter(map(repr, rows.to_pylist()))
        assert set(once.values()) == {cube.replication(stream)}
        assert sorted(once) == sent[stream]
    with pytest.raises(UnsupportedError, match="cannot be sorted"):
        shard_layout(inputs, cube, sort_by_time=True)


def test_what_does_not_fit_is_refused_with_a_remedy(spark):
    key = Dimension("k", frozenset("ab"))
    cube = Hypercube((key,), (2,), 2)
    data = spark.createDataFrame([], "k bigint, s string, c string COLLATE UTF8_LCASE")

    def laid(*streams, **options):
        return shard_layout(streams, cube, **options)

    a = StreamInput("a", data, ["k"], {"k": "k"})
    with pytest.raises(SchemaError, match="a has no column 'kk': did you mean 'k'"):
        laid(StreamInput("a", data, ["kk"], {"k": "k"}))
    with pytest.raises(SchemaError, match="belongs to b, which is not laid out"):
        laid(a)
    with pytest.raises(UnsupportedError, match="129 streams are more than the 128"):
        laid(*[a] * 129)
    with pytest.raises(SchemaError, match="two streams have one alias"):
        laid(a, a)
    with pytest.raises(SchemaError, match="stream b has no key for dimension 'k'"):
        laid(a, StreamInput("b", data, ["k"]))
    with pytest.raises(SchemaError, match="a: bigint, b: string"):
        laid(a, StreamInput("b", data, ["k"], {"k": "s"}))
    with pytest.raises(UnsupportedError, match="collation"):
        laid(a, StreamInput("b", data, ["k"], {"k": "c"}))
    with pytest.raises(SchemaError, match="at least one"):
        laid()
    b = StreamInput("b", data, ["k"], {"k": "k"}, time="k")
    with pytest.raises(SchemaError, match="a: no time=, b: bigint"):
        laid(a, b, sort_by_time=True)
    with pytest.raises(SchemaError, match=r"cannot be sorted by place.* a: no place=, b: bigint"):
        laid(a, StreamInput("b", data, ["k"], {"k": "k"}, place="k"), sort_by_place=True)
    with pytest.raises(SchemaError, match="the time 's' of b must be sent as well"):
        laid(a, StreamInput("b", data, ["k"], {"k": "k"}, time="s"))
    with pytest.raises(SchemaError, match="the place 's' of b must be sent as well"):
        laid(a, StreamInput("b", data, ["k"], {"k": "k"}, place="s"))
