"""Streams learn within their first batches, whatever their columns, and say what they are doing."""

import gzip
import os
from pathlib import Path
from time import monotonic, sleep

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import querymesh as qm
from equivalence import as_multiset
from join_feed import Feed, Ran, random_rows

BATCHES, ROWS = 12, 1500
VALUES = 300
HONEYPOT = Path("honeypot") / "marx.csv.gz"

QUERY = """SELECT p.id, n.risk, s.service FROM Packets p, Networks n, Services s
           WHERE p.network = n.network AND p.port = s.port
             AND from_busy_half(p.src) AND high_source_port(p.spt) AND upper(p.host) LIKE '%O%'"""
PLAIN = "src % 7 < 4 AND spt % 10 < 6 AND upper(host) LIKE '%O%'"


def from_busy_half(src: int) -> bool:
    return src % 7 < 4


def high_source_port(spt: int) -> bool:
    return spt % 10 < 6


def by_value(function, column):
    return qm.predicate(function, columns=[column], name=function.__name__, vectorised=False)


def functions():
    predicates = [by_value(from_busy_half, "src"), by_value(high_source_port, "spt")]
    return {predicate.name: predicate for predicate in predicates}


def real_packets():
    """Packets of the honeypot data, from all of its months."""
    given = os.environ.get("QUERYMESH_DATA")
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(given) if given else beside
    if not (folder / HONEYPOT).is_file():
        pytest.skip("no honeypot data here; QUERYMESH_DATA=folder says where they are")
    with gzip.open(folder / HONEYPOT) as packed:
        table = pyarrow.csv.read_csv(packed)
    table = table.filter(pc.and_(pc.is_valid(table["spt"]), pc.is_valid(table["dpt"])))
    every = np.linspace(0, table.num_rows - 1, BATCHES * ROWS).astype(np.int64)
    return table.select(["host", "src", "proto", "spt", "dpt"]).take(pa.array(every))


def made_up_packets():
    """Rows of the same shape: hosts, protocols and ports hang together as they do there."""
    rng = np.random.default_rng(4)
    rows = BATCHES * ROWS
    host = rng.choice(["groucho-oregon", "groucho-tokyo", "groucho-us-east", "zeppo-norcal"], rows)
    proto = np.where(host == "groucho-tokyo", "UDP", rng.choice(["TCP", "UDP", "ICMP"], rows))
    rest = np.where(proto == "UDP", 5, rng.integers(0, 7, rows))
    src = 7 * rng.integers(2**20, 2**29, rows) + rest
    spt = np.where(proto == "TCP", 6000, rng.integers(1, 65536, rows))
    dpt = (rng.pareto(0.8, rows) * 20).astype(np.int64) % 65536
    columns = {"host": host, "src": src, "proto": proto, "spt": spt, "dpt": dpt}
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def among_the_most_frequent(numbers):
    """Numbers as text of VALUES values: the most frequent ones, and one name for all others."""
    counts = sorted(pc.value_counts(numbers).to_pylist(), key=lambda c: (-c["counts"], c["values"]))
    kept = pa.array([count["values"] for count in counts[: VALUES - 1]], numbers.type)
    told = pc.is_in(numbers, value_set=kept)
    return pc.if_else(told, pc.cast(numbers, pa.string()), "other")


class Packets:
    """Files of packets, one a batch, and two tables to look them up in."""

    def __init__(self, folder, table):
        self.folder = folder
        folder.mkdir()
        src = pc.cast(table["src"], pa.int64()).combine_chunks()
        dpt = pc.cast(table["dpt"], pa.int64()).combine_chunks()
        network = among_the_most_frequent(pc.shift_right(src, 18))
        port = among_the_most_frequent(dpt)
        self.table = pa.table(
            {
                "id": pa.array(np.random.default_rng(1).permutation(table.num_rows)),
                "host": table["host"], "proto": table["proto"], "src": src,
                "spt": pc.cast(table["spt"], pa.int64()), "network": network, "port": port,
            }
        )  # fmt: skip
        for number in range(BATCHES):
            part = self.table.slice(number * ROWS, ROWS)
            pq.write_table(part, folder / f"part-{number:02d}.parquet")
        networks = sorted(pc.unique(network).to_pylist())
        ports = sorted(pc.unique(port).to_pylist())
        self.values = {"network": len(networks), "port": len(ports)}
        self.networks = pa.table(
            {"network": networks[::2], "risk": [len(name) for name in networks[::2]]}
        )
        self.services = pa.table({"port": ports[:200], "service": [f"s{p}" for p in ports[:200]]})

    def stream(self, spark):
        schema = spark.read.parquet(str(self.folder)).schema
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.folder))

    def expected(self, spark):
        packets = spark.createDataFrame(self.table).filter(PLAIN)
        joined = packets.join(spark.createDataFrame(self.networks), "network")
        joined = joined.join(spark.createDataFrame(self.services), "port")
        return as_multiset(joined.select("id", "risk", "service").toArrow())


@pytest.mark.parametrize("packets", [made_up_packets, real_packets])
def test_a_stream_with_look_ups_and_text_of_300_values_learns_within_ten_batches(
    spark, tmp_path, packets
):
    data = Packets(tmp_path / "in", packets())
    assert data.values["network"] > 100
    assert data.values["port"] == VALUES
    tables = {"Networks": data.networks, "Services": data.services}
    out = qm.run(qm.query(QUERY, functions=functions()), {"Packets": data.stream(spark), **tables})
    live = qm.inspect(out)
    meanwhile, by_ten = [], []

    def write(batch, number):
        batch.write.mode("append").parquet(str(tmp_path / "out"))
        if number == 0:
            meanwhile.append((heard(live), live.explain()))
        sleep(0.3)  # as a trigger would: no more, whatever the learner does meanwhile
        if number == 9:
            by_ten.append((learning(live), live.view.version))

    to_the_end(out.writeStream.foreachBatch(write), tmp_path)
    ((status, text),) = meanwhile
    assert status["isLearning"]
    assert status["message"].startswith("learning since 20")
    assert 0 < status["numProfiledRows"] < status["numWantedRows"] == 2000
    assert f"{status['numProfiledRows']:,} of 2,000 rows profiled" in status["message"]
    assert "runs in the order as written, learning since" in text
    ((status, version),) = by_ten
    assert not status["isLearning"], status["message"]
    assert version >= 1
    assert status["lastTraining"] is not None
    assert live.problems == []
    assert "learning since" not in live.explain()
    assert as_multiset(spark.read.parquet(str(tmp_path / "out")).toArrow()) == data.expected(spark)


def learning(live):
    (stream,) = live.progress["streams"].values()
    return stream["learning"]


def heard(live):
    """What is being learned, once the first task's report is taken in."""
    until = monotonic() + 30
    while not learning(live)["numProfiledRows"] and monotonic() < until:
        sleep(0.05)
    return learning(live)


def to_the_end(writer, tmp_path):
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    assert writer.trigger(availableNow=True).start().awaitTermination(300)


THREE = """SELECT a.id AS a, b.id AS b, c.id AS c
           FROM A a [RANGE 4 SECONDS], B b [RANGE 4 SECONDS], C c [RANGE 4 SECONDS]
           WHERE a.k = b.k AND b.x = c.x AND a.y < 4"""


@pytest.mark.parametrize("policy", ["mesh", "single"])
def test_each_stream_of_a_window_join_says_what_it_learns(spark, tmp_path, policy):
    feed = Feed(spark, tmp_path / "in", "ABC")
    rng = np.random.default_rng(5)
    feed.add(**{name: random_rows(rng, 150, 3) for name in "ABC"})
    live = Ran(feed, THREE, tmp_path / "checkpoint", policy=policy).live
    streams = live.progress["streams"]
    assert streams.keys() == {"a", "b", "c"}
    text = live.explain()
    for alias, stream in streams.items():
        assert stream["learning"]["isLearning"]
        assert stream["learning"]["message"].startswith("learning since 20")
        assert f"{alias} runs in the order as written, learning since 20" in text


@pytest.fixture(scope="module")
def many_categories(tmp_path_factory):
    """Three files of rows whose name has 10,000 values, and a text of a megabyte now and then."""
    folder = tmp_path_factory.mktemp("many") / "in"
    folder.mkdir()
    for number in range(3):
        ids = np.arange(10_000 * number, 10_000 * (number + 1))
        long = pa.array(["x" * 1_000_000 if k % 2000 == 0 else "short" for k in ids])
        name = pa.array([f"name-{k * 7919 % 10_000}" for k in ids])
        table = pa.table({"id": ids, "name": name, "body": long, "kind": pa.array(ids % 3)})
        pq.write_table(table, folder / f"part-{number}.parquet")
    return folder


ODD = [
    "name LIKE '%7%'",
    "body LIKE '%o%' OR kind % 2 = 0",
    "1 + 1 = 2",
    "length(name) > 3",
]


def test_a_stream_of_10_000_categories_and_rows_of_a_megabyte_learns(
    spark, many_categories, tmp_path
):
    schema = spark.read.parquet(str(many_categories)).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    keeps = by_value(from_busy_half, "id")
    out = stream.parquet(str(many_categories)).transform(
        qm.where(*ODD, keeps, policy=qm.policies.Mesh(sample_rows=300))
    )
    live = qm.inspect(out)

    def write(batch, number):
        batch.select("id").write.mode("append").parquet(str(tmp_path / "out"))
        if number:
            live.wait_until_learned(3)  # at once where it has learned already

    to_the_end(out.writeStream.foreachBatch(write), tmp_path)
    status = learning(live)
    assert not status["isLearning"], status["message"]
    assert live.counts.profiled_rows < 2000, "a bounded number, however many rows there are"
    plain = spark.read.parquet(str(many_categories)).filter(" AND ".join(f"({c})" for c in ODD))
    wanted = plain.filter("id % 7 < 4").select("id")
    found = spark.read.parquet(str(tmp_path / "out"))
    assert as_multiset(found.toArrow()) == as_multiset(wanted.toArrow())


def test_a_stream_with_a_condition_that_is_always_null_keeps_nothing_and_learns(
    spark, many_categories, tmp_path
):
    schema = spark.read.parquet(str(many_categories)).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    nothing = "CASE WHEN length(name) < 0 THEN true END"
    out = stream.parquet(str(many_categories)).transform(
        qm.where(
            "name LIKE '%7%'",
            nothing,
            "body LIKE '%o%'",
            policy=qm.policies.Mesh(sample_rows=300),
        )
    )
    live = qm.inspect(out)
    to_the_end(out.writeStream.format("noop"), tmp_path)
    assert live.counts.rows_out == 0
    assert live.wait_until_learned(60)
    assert live.counts.rows_in == 30_000
    status = learning(live)
    assert not status["isLearning"], status["message"]
    assert status["message"].startswith("at 20")
    assert live.view.versions[1][1].operators[1].pass_rate == 0.0


def test_fifty_conditions_give_what_spark_gives_after_a_small_sample(spark, many_categories):
    frame = spark.read.parquet(str(many_categories))
    texts = [f"name NOT LIKE '%{k:02d}%'" for k in range(50)]
    out = frame.transform(qm.where(*texts, policy=qm.policies.Mesh(sample_rows=300)))
    plain = frame.filter(" AND ".join(f"({text})" for text in texts))
    kept = plain.count()
    assert 0 < kept < 15_000
    assert out.count() == kept
    found = qm.inspect(out)
    assert found.preparation is not None
    assert 0 < found.preparation.sample_rows <= 300
    assert len(found.mesh.operators) == 50
