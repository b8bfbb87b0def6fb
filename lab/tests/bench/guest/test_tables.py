import pyarrow as pa
import pyarrow.parquet as pq

from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.guest import tables
from querymesh_lab.bench.guest.tables import Workshop, stored, stored_by_parts


def test_each_run_has_a_path_of_its_own_that_goes_afterwards(tmp_path):
    table = stored(pa.table({"id": range(10)}), tmp_path / "t" / "day=1")
    table = tables.StoredTable(tmp_path / "t", table.rows)
    with table.linked() as first, table.linked() as second:
        assert len({first, second, table.folder}) == 3
        for copy in (first, second):
            assert pq.read_table(copy).column("id").to_pylist() == list(range(10))
    assert not first.exists()
    assert pq.read_table(table.folder).num_rows == 10


def test_parts_make_up_the_rows_asked_for(tmp_path):
    seeds = []

    def make(rows: int, seed: int) -> pa.Table:
        seeds.append(seed)
        return pa.table({"id": range(rows)})

    table = stored_by_parts(make, 25, tmp_path / "t", most_rows=10)
    assert pq.read_table(table.folder).num_rows == table.rows == 25
    assert seeds == [0, 1, 2, 3]
    assert {pq.read_metadata(path).num_rows for path in table.folder.glob("*")} == {7, 4}


def test_a_table_is_made_once_and_forgotten_when_told(tmp_path):
    workshop = Workshop(Bench(quick=True), tmp_path)
    made = []

    def make(folder):
        made.append(folder)
        return stored(pa.table({"id": [1]}), folder)

    assert workshop.table("t", make) is workshop.table("t", make)
    assert len(made) == 1
    workshop.forget()
    assert not made[0].exists()
    workshop.table("t", make)
    assert len(made) == 2


def test_the_rival_is_tried_on_rows_drawn_from_a_large_table(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "TRIED_ROWS", 200)
    workshop = Workshop(Bench(quick=True, start=lambda: spark), tmp_path)
    large = stored(pa.table({"id": range(1000)}), tmp_path / "large")
    small = workshop.small(large)
    assert 100 < small.rows < 300
    assert small.read(spark).count() == small.rows
    tiny = stored(pa.table({"id": range(100)}), tmp_path / "tiny")
    assert workshop.small(tiny) is tiny
