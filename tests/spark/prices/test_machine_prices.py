"""What is remembered of a machine, and what happens when it cannot be."""

import json

import pytest

from querymesh.cost.catalyst_prices import PRICES
from querymesh.spark.prices import machine_prices
from querymesh.spark.prices.calibration import _trials, texts
from querymesh.spark.prices.catalyst_costs import timed_us
from querymesh.spark.prices.machine_prices import (
    cache_folder,
    cost_table,
    measured_slower,
    remember_slower,
    remembered_slower,
)


def test_a_measurement_is_remembered_for_its_machine_only(tmp_path):
    remember_slower(tmp_path / "new", "this", 1.5)
    assert remembered_slower(tmp_path / "new", "this") == 1.5
    assert remembered_slower(tmp_path / "new", "other") is None


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", '{"version": 1}', '{"version": 9, "machine": "m", "slower": 1.5}',
     '{"version": 1, "machine": "other", "slower": 1.5}',
     '{"version": 1, "machine": "m", "slower": "fast"}',
     '{"version": 1, "machine": "m", "slower": NaN}',
     '{"version": 1, "machine": "m", "slower": -1}',
     '{"version": 1, "machine": "m", "slower": 1e9}'],
)  # fmt: skip
def test_a_damaged_file_is_measured_again(tmp_path, content):
    remember_slower(tmp_path, "m", 1.5)
    (file,) = tmp_path.iterdir()
    file.write_text(content)
    assert remembered_slower(tmp_path, "m") is None


def test_a_folder_that_cannot_be_written_to_is_no_error(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    remember_slower(blocked / "below", "m", 1.5)
    assert remembered_slower(blocked / "below", "m") is None


def test_the_folder_is_the_users_own(monkeypatch, tmp_path):
    monkeypatch.setenv("QUERYMESH_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("QUERYMESH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "querymesh"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "querymesh"


def test_the_machine_is_measured_once(spark, monkeypatch, tmp_path):
    monkeypatch.setenv("QUERYMESH_CACHE", str(tmp_path))
    table = cost_table(spark)
    assert table.prices == PRICES
    (file,) = tmp_path.iterdir()
    assert json.loads(file.read_text())["slower"] == table.slower
    monkeypatch.setattr(machine_prices, "measured_slower", lambda session: pytest.fail("again"))
    assert cost_table(spark) == table
    machine_prices._slower_in.cache_clear()
    assert cost_table(spark) == table, "another process reads the file"


def test_a_measured_factor_is_plausible(spark):
    assert 0.1 < measured_slower(spark) < 30


def test_every_condition_of_the_calibration_can_be_timed(spark):
    trials = list(_trials())
    us = timed_us(spark, texts(40, rows=5), [trial.condition for trial in trials], 0.1, 1)
    assert us is not None
    assert [t.kind for t, cost in zip(trials, us, strict=True) if cost != cost] == []
    assert {trial.kind for trial in trials} <= PRICES.keys()
