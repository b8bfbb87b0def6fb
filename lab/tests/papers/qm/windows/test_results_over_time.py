"""QM's Figure 11 on windowed streams."""

from __future__ import annotations

import pytest

from querymesh_lab.bench.case import Bench
from querymesh_lab.papers.qm.over_time import AGAIN
from querymesh_lab.papers.qm.rivals import QM, SP
from querymesh_lab.papers.qm.windows import results_over_time
from querymesh_lab.papers.qm.windows.stream_rivals import EDDIES


def test_every_rival_is_followed_and_compared_at_the_same_time() -> None:
    subject = results_over_time.ten_streams(quick=True)
    seen = results_over_time.watch(Bench(quick=True), subject)
    assert set(seen.curves) == {QM, SP, AGAIN, *EDDIES}
    assert all(curve == sorted(curve) for curve in seen.curves.values())
    rows = results_over_time.results("11a", subject.name, seen)
    assert [row.claim.claim for row in rows] == [
        f"Poisson, windows: results by the end, QM over {rival}" for rival in (SP, *EDDIES)
    ]
    assert all(row.a_a is not None for row in rows)


def test_between_two_steps_results_are_in_proportion() -> None:
    curve = [(1.0, 10), (3.0, 30)]
    found = [results_over_time.made_by(curve, at_s) for at_s in (0.5, 2.0, 3.0)]
    assert found == pytest.approx([5.0, 20.0, 30.0])
