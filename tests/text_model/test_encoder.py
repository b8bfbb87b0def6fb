"""Arguments of any type become features, and an encoder survives being saved."""

import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from querymesh.text_model.encoder import encoder_from_json, fit_encoder

COLUMNS = [
    pa.array(["a", None, "c d"]),
    pa.array(["a", None, "c d"]).dictionary_encode(),
    pa.array([1, None, 3]),
    pa.array([1.5, float("nan"), float("inf")]),
    pa.array([1e308, -1e308, 5e-324]),
    pa.array([True, None, False]),
    pa.array([Decimal("1.50"), None, Decimal("2.00")]),
    pa.array([date(2020, 1, 1), None, date(2021, 1, 1)]),
    pa.array([datetime(2020, 1, 1), None, datetime(2021, 1, 1)]),
    pa.array([[1, 2], None, []]),
    pa.array([b"\xff", None, b""]),
    pa.nulls(3),
    pa.nulls(3, pa.int64()),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_every_type_has_features_that_are_numbers(column: pa.Array) -> None:
    rows = fit_encoder([column]).rows([column], 3)
    assert len(rows) == 3
    assert np.isfinite(rows.values).all()
    assert (rows.features >= 0).all()
    assert (rows.features < rows.width).all()


def test_a_saved_encoder_makes_the_same_features() -> None:
    encoder = fit_encoder(COLUMNS)
    again = encoder_from_json(json.loads(json.dumps(encoder.to_json())))
    assert again == encoder
    one, other = encoder.rows(COLUMNS, 3), again.rows(COLUMNS, 3)
    assert one.features.tolist() == other.features.tolist()
    assert one.values.tolist() == other.values.tolist()


def test_rows_do_not_depend_on_what_they_come_with() -> None:
    args = [pa.array(["x y", "z", None, "x"] * 200), pa.array([1.0, 2.0, None, 4.0] * 200)]
    encoder = fit_encoder(args)
    together = encoder.rows(args, 800)
    weights = np.random.default_rng(0).normal(size=encoder.width)
    alone = encoder.rows([arg.slice(601, 2) for arg in args], 2)
    assert np.allclose(together.times(weights)[601:603], alone.times(weights))


def test_null_is_told_from_empty_and_from_zero() -> None:
    encoder = fit_encoder([pa.array(["a", ""]), pa.array([0, 1])])
    null = encoder.rows([pa.array([None, ""], pa.string()), pa.array([None, 0])], 2)
    assert set(null.take(np.array([0])).features) != set(null.take(np.array([1])).features)


def test_no_columns_are_rows_without_features() -> None:
    assert fit_encoder([]).rows([], 4).times(np.ones(1 << 14)).tolist() == [0.0] * 4


@pytest.mark.parametrize(
    "content",
    [
        3,
        {},
        {"buckets": True, "columns": []},
        {"buckets": 1 << 30, "columns": []},
        {"buckets": 8, "columns": {}},
        {"buckets": 8, "columns": [{"kind": "image"}]},
        {"buckets": 8, "columns": [{"kind": "number", "mean": 0, "scale": 0, "edges": []}]},
        {"buckets": 8, "columns": [{"kind": "number", "mean": "0", "scale": 1, "edges": []}]},
        {"buckets": 8, "columns": [{"kind": "number", "mean": 0, "scale": 1, "edges": [2, 1]}]},
        {"buckets": 8, "columns": [{"kind": "number", "mean": 0, "scale": 1, "edges": 1}]},
    ],
)
def test_what_is_no_encoder_is_refused(content: Any) -> None:
    with pytest.raises(ValueError, match=r"encoder|buckets|column|scale|mean"):
        encoder_from_json(content)
