"""Columns that come and go: which are sent, and what is made of rows that came without them."""

import numpy as np
import pyarrow as pa

from querymesh.runtime.telling import TellingColumns
from querymesh.stats.profile import Profile


def profile(*names):
    sample = pa.table({name: [1, 2] for name in names})
    nothing = np.zeros(1)
    return Profile(sample, ("a",), (frozenset(),), np.ones((2, 1)), nothing, nothing)


def test_nothing_is_held_back_where_nothing_is_attached():
    telling = TellingColumns()
    telling.only([])
    assert telling.of(profile("x", "kind")).sample.column_names == ["x", "kind"]
    assert telling.held_back == frozenset()


def test_only_what_was_attached_comes_and_goes_and_is_told_where_it_changes():
    told = []
    telling = TellingColumns()
    telling.only(["kind"])
    telling.attach(["kind", "port"], told.append)
    telling.only(["kind", "x"])
    telling.all()
    telling.only([])
    assert told == [{"kind"}, {"kind", "port"}, set()]


def test_profiles_have_the_columns_that_are_sent_and_are_left_out_where_they_lack_one():
    telling = TellingColumns()
    telling.attach(["kind", "port"], lambda names: None)
    telling.only(["kind"])
    assert telling.of(profile("x", "kind", "port")).sample.column_names == ["x", "kind"]
    assert telling.of(profile("x")) is None
    telling.all()
    assert telling.of(profile("x", "kind")) is None
    assert telling.of(profile("x", "kind", "port")).sample.num_columns == 3
