"""A stream sends what its predicates read, and other columns only while it looks for kinds."""

from time import monotonic, sleep

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import querymesh as qm
from drifting import PLAIN, SWAPPED, conditions, rows_of
from equivalence import as_multiset
from querymesh.spark.filters.gates import ColumnGates
from simulated_stream import OPPOSITE, tuples

ROWS, BATCHES = 3000, 20
READ = {"x", "y", "z"}


def scanned(frame):
    """The columns that the scan of a physical plan reads."""
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return plan.partition("ReadSchema: struct<")[2].partition(">")[0]


def test_a_gate_that_is_closed_takes_the_column_out_of_the_next_plan(spark, tmp_path):
    folder = str(tmp_path / "in")
    spark.range(9).selectExpr("id", "id % 2 AS `a b`", "id % 3 AS c").write.parquet(folder)
    gates = ColumnGates(spark, ["a b", "c"])
    given = spark.read.parquet(folder)

    def planned():
        # A streaming query plans each batch anew from one analysed plan; so does a new DataFrame.
        return given.select(gates.state.alias("state"), gates.column("a b"), gates.column("c"))

    assert scanned(planned()) == "a b:bigint,c:bigint"
    gates.open(["c"])
    assert scanned(planned()) == "c:bigint"
    assert {tuple(row)[:2] for row in planned().collect()} == {(2, None)}
    gates.open(["a b"])
    assert scanned(planned()) == "a b:bigint"


class Drifting:
    """Files of rows whose kinds swap their selectivities, with columns that tell nothing."""

    def __init__(self, spark, folder, batches, swapped_from=BATCHES):
        folder.mkdir()
        self.spark, self.folder, rng = spark, folder, np.random.default_rng(3)
        for number in range(batches):
            table = rows_of(tuples(rng, ROWS, SWAPPED if number >= swapped_from else OPPOSITE), rng)
            table = table.append_column("id", pa.array(rng.permutation(ROWS)))
            for name in ("idle", "vain"):
                table = table.append_column(name, pa.array(rng.integers(0, 9, ROWS).astype(str)))
            pq.write_table(table, folder / f"part-{number:02d}.parquet")
        self.batch = spark.read.parquet(str(folder))

    def stream(self):
        reader = self.spark.readStream.schema(self.batch.schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.folder))


@pytest.mark.parametrize(
    ("policy", "batches"), [(qm.policies.Mesh, BATCHES), (qm.policies.Single, 4)]
)
def test_columns_that_nothing_reads_are_sent_only_while_kinds_are_looked_for(
    spark, tmp_path, policy, batches
):
    data = Drifting(spark, tmp_path / "in", batches, swapped_from=8)
    out = data.stream().transform(
        qm.where(*conditions(cost=1.0), policy=policy(sample_rows=600), engine="fabric")
    )
    live = qm.inspect(out)
    running, sent = [], []

    def write(batch, number):
        batch.write.mode("append").parquet(str(tmp_path / "out"))
        while not running:
            sleep(0.01)
        plan = running[0]._jsq.explainInternal(False)
        called = plan.partition("ArrowEvalPython [")[2].partition("\n")[0]
        sent.append({name for name in data.batch.columns if f"{name}#" in called})
        if number == 3:  # the first mesh is trained meanwhile, on a thread of its own
            live.wait_until_learned(60)
        if number >= 8 and not live.switches:
            settle(live)

    writer = out.select(*READ, "id").writeStream.foreachBatch(write)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    running.append(writer.trigger(availableNow=True).start())
    assert running[0].awaitTermination(300)
    assert len(sent) == batches
    wanted = data.batch.filter(PLAIN).select(*READ, "id")
    found = spark.read.parquet(str(tmp_path / "out"))
    assert as_multiset(found.toArrow()) == as_multiset(wanted.toArrow())
    if policy is qm.policies.Single:
        assert all(names == READ for names in sent), "one order for all asks for no other column"
        return
    assert sent[0] == {*data.batch.columns}, "kinds may be told by any of them"
    assert sent[5] == READ | {"kind"}, "the mesh asks for the kind, and nothing else is sent"
    assert {*data.batch.columns} in sent[9:], "the data changed, and other kinds may be told"
    assert live.switches
    assert sent[-1] == READ | {"kind"}


def settle(live):
    """Let what is being searched for be found, so that batches are not over before."""
    until = monotonic() + 0.5
    while not live.switches and monotonic() < until:
        sleep(0.02)


def test_a_column_behind_a_gate_still_passes_a_later_filter_into_the_scan(spark, tmp_path):
    data = Drifting(spark, tmp_path / "in", 2)
    out = data.stream().transform(qm.where(*conditions(), engine="fabric"))
    seen = []

    def write(batch, number):
        if number == 0:
            seen.append(running[0]._jsq.explainInternal(False))

    running = []
    writer = out.filter(F.col("vain") > "3").select("id").writeStream.foreachBatch(write)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    running.append(query := writer.start())
    until = monotonic() + 60
    while not seen and monotonic() < until:
        sleep(0.05)
    query.stop()
    assert "GreaterThan(vain,3)" in seen[0].partition("PushedFilters")[2].partition("]")[0]
