"""What travels of profiled rows to the driver."""

import pyarrow as pa

from querymesh.runtime.task.profiling import MOST_CHARACTERS, light


def test_rows_of_a_megabyte_travel_to_the_driver_as_a_few_hundred_bytes():
    whole = "x" * 1_000_000
    rows = pa.table(
        {
            "id": pa.array([1, 2]),
            "name": pa.array(["short", None]),
            "body": pa.array([whole, "ä" * 1_000]),
            "blob": pa.array([whole.encode(), b""]),
            "list": pa.array([[whole], None]),
        }
    )
    sent = light(rows)
    assert sent.schema == rows.schema
    assert sent["id"].equals(rows["id"])
    assert sent["name"].equals(rows["name"])
    assert sent["body"].to_pylist() == ["x" * MOST_CHARACTERS, "ä" * MOST_CHARACTERS]
    assert sent["blob"].null_count == sent["list"].null_count == 2
    assert sent.nbytes < 2_000


def test_rows_that_are_light_already_are_left_as_they_are():
    rows = pa.table({"id": pa.array([1]), "name": pa.array(["short"])})
    assert light(rows).equals(rows)
    assert light(rows.slice(0, 0)).num_rows == 0
