"""The checkpoint of a streaming join: what goes on from it, and what is refused."""

import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
from pyspark.errors import StreamingQueryException

import querymesh as qm
from join_feed import PAIR, Feed, Ran, pairs_of, query_of, random_rows, rows_at, to_end


class Base:
    """A checkpoint after two batches, with rows for a third waiting."""

    def __init__(self, spark, folder: Path, sql: str = PAIR) -> None:
        self.spark, self.folder, self.sql = spark, folder, sql
        self.feed = Feed(spark, folder / "in", "AB")
        rng = np.random.default_rng(2)
        for number in range(2):
            self.feed.add(**{n: random_rows(rng, 30, 3.0, 3 * number) for n in "AB"})
        Ran(self.feed, sql, folder / "checkpoint")
        self.feed.add(A=rows_at(6), B=rows_at(6))
        self.copies = 0

    def copy(self) -> "Copy":
        self.copies += 1
        checkpoint = self.folder / f"copy-{self.copies}"
        shutil.copytree(self.folder / "checkpoint", checkpoint)
        return Copy(self, checkpoint)


class Copy:
    """A copy of the checkpoint, to be spoilt."""

    def __init__(self, base: Base, checkpoint: Path) -> None:
        self.base, self.checkpoint = base, checkpoint

    @property
    def state(self) -> Path:
        (folder,) = self.checkpoint.glob("querymesh/join-state/*/")
        return folder

    def run(self, sql: str | None = None, **how):
        return Ran(self.base.feed, sql or self.base.sql, self.checkpoint, **how)

    def refused(self, *names: str) -> None:
        """The query stops with an error that tells all these."""
        with pytest.raises(StreamingQueryException) as caught:
            self.run()
        for name in ("StateError", *names):
            assert name in str(caught.value)


@pytest.fixture(scope="module")
def base(spark, tmp_path_factory) -> Base:
    return Base(spark, tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def stranger(spark, tmp_path_factory) -> Base:
    """Another query."""
    sql = PAIR.replace("a.k = b.k", "a.x = b.x")
    return Base(spark, tmp_path_factory.mktemp("stranger"), sql)


def test_a_checkpoint_that_was_moved_goes_on(base):
    copy = base.copy()
    copy.run()
    again = copy.run()
    assert again.tables == {}, "nothing is left to do"


def test_a_damaged_block_stops_the_query_with_its_name(base):
    copy = base.copy()
    # One of the last batch: what is older may have expired.
    block = next(iter(sorted(copy.state.glob("shard-*/blocks/*-00000001-*.block"))))
    content = bytearray(block.read_bytes())
    content[len(content) // 2] ^= 1
    block.write_bytes(content)
    copy.refused(str(block), "is damaged: its checksum does not fit")


def test_a_missing_manifest_stops_the_query_with_its_name(base):
    copy = base.copy()
    manifest = copy.state / "shard-0001/manifest-00000001.json"
    manifest.unlink()
    copy.refused(str(manifest), "is missing")


def test_a_foreign_manifest_stops_the_query_with_its_name(base, stranger):
    copy, manifest = base.copy(), "shard-0000/manifest-00000001.json"
    shutil.copy(stranger.copy().state / manifest, copy.state / manifest)
    copy.refused(str(copy.state / manifest), "does not belong here")


def test_a_foreign_block_stops_the_query_with_its_name(base):
    copy = base.copy()
    one, other = sorted(copy.state.glob("shard-0000/blocks/*-00000001-*.block"))[:2]
    shutil.copy(other, one)
    copy.refused(str(one))


def test_state_that_was_deleted_is_missed(base):
    copy = base.copy()
    shutil.rmtree(copy.state)
    copy.refused(str(copy.checkpoint), "it was deleted")
    shutil.rmtree(copy.checkpoint / "querymesh")
    with pytest.raises(qm.QueryMeshError, match="though Spark has committed batch 1"):
        copy.run()


@pytest.mark.parametrize(
    ("sql", "how", "told"),
    [
        (PAIR.replace("a.k = b.k", "a.x = b.x"), {}, "the query was .*a.k = b.k, now .*a.x = b.x"),
        (PAIR.replace("B b [RANGE 5", "B b [RANGE 6"), {},
         r"the window of b was \[RANGE 5 SECONDS\], now \[RANGE 6 SECONDS\]"),
        (PAIR, {"shards": 3}, 'shards was 2, now 3'),
    ],
)  # fmt: skip
def test_another_query_on_the_checkpoint_is_refused_with_what_changed(base, sql, how, told):
    with pytest.raises(qm.QueryMeshError, match=told):
        base.copy().run(sql, **how)


def test_a_checkpoint_must_be_given_and_be_that_of_the_query(base, tmp_path):
    with pytest.raises(qm.QueryMeshError, match="give checkpoint=, the directory you also give"):
        qm.run(query_of(), base.feed.streams(), shards=2)
    out = qm.run(query_of(), base.feed.streams(), shards=2, checkpoint=str(tmp_path / "one"))
    with pytest.raises(StreamingQueryException, match="give the checkpointLocation of writeStream"):
        to_end(out.writeStream.format("noop"), tmp_path / "other")


def test_a_second_sink_needs_a_run_of_its_own(base, tmp_path):
    def counted(out, checkpoint):
        counts = []
        writer = out.writeStream.foreachBatch(lambda batch, _: counts.append(batch.count()))
        to_end(writer, tmp_path / checkpoint)
        return sum(counts)

    outs = [
        qm.run(query_of(), base.feed.streams(), shards=2, checkpoint=str(tmp_path / checkpoint))
        for checkpoint in ("one", "two")
    ]
    expected = sum(pairs_of(base.feed).values())
    assert counted(outs[0], "one") == expected
    with pytest.raises(StreamingQueryException, match="is of the query"):
        counted(outs[0], "three")
    assert counted(outs[1], "two") == expected


def test_a_batch_is_read_by_a_job_that_knows_it(base):
    """Else its rows would be stored as those of another batch."""
    copy, told = base.copy(), []

    def read_in_a_thread(batch, _):
        def read():
            try:
                batch.count()
            except Exception as problem:
                told.append(str(problem))

        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
        batch.count()

    out = qm.run(query_of(), base.feed.streams(), shards=2, checkpoint=str(copy.checkpoint))
    to_end(out.writeStream.foreachBatch(read_in_a_thread), copy.checkpoint)
    assert "start others as pyspark.InheritableThread" in told[0]


def test_a_batch_that_was_kept_is_not_read_in_a_later_one(base, tmp_path):
    kept = []

    def read_the_first_again(batch, _):
        kept.append(batch)
        batch.count()
        kept[0].count()

    out = qm.run(query_of(), base.feed.streams(), shards=2, checkpoint=str(tmp_path / "one"))
    with pytest.raises(StreamingQueryException, match="rows of an earlier micro-batch were read"):
        to_end(out.writeStream.foreachBatch(read_the_first_again), tmp_path / "one")


def test_batch_and_streaming_inputs_do_not_mix(base):
    streams = base.feed.streams()
    streams["B"] = base.spark.read.parquet(str(base.feed.folder / "B"))
    with pytest.raises(qm.QueryMeshError, match="b is a batch DataFrame, but the other"):
        qm.run(query_of(), streams, checkpoint=str(base.folder / "mixed"))


def test_windows_that_count_rows_take_one_shard(base):
    rows = query_of(PAIR.replace("RANGE 5 SECONDS", "ROWS 5"))
    with pytest.raises(qm.UnsupportedError, match=r"\[ROWS n\] counts arrivals, .*one shard"):
        qm.run(rows, base.feed.streams(), shards=2, checkpoint=str(base.folder / "rows"))
