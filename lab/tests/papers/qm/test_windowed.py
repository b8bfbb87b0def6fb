"""QM's Figures 11 and 13 on windowed streams."""

from __future__ import annotations

import pytest

from querymesh_lab.bench.case import Bench
from querymesh_lab.papers.qm import windowed_over_time, windowed_starts
from querymesh_lab.papers.qm.over_time import AGAIN
from querymesh_lab.papers.qm.rivals import QM, SP
from querymesh_lab.papers.qm.starts import STATED
from querymesh_lab.papers.qm.stream_rivals import EDDIES


def test_every_rival_is_followed_and_compared_at_the_same_time() -> None:
    subject = windowed_over_time.ten_streams(quick=True)
    seen = windowed_over_time.watch(Bench(quick=True), subject)
    assert set(seen.curves) == {QM, SP, AGAIN, *EDDIES}
    assert all(curve == sorted(curve) for curve in seen.curves.values())
    rows = windowed_over_time.results("11a", subject.name, seen)
    assert [row.claim.claim for row in rows] == [
        f"Poisson, windows: results by the end, QM over {rival}" for rival in (SP, *EDDIES)
    ]
    assert all(row.a_a is not None for row in rows)


def test_between_two_steps_results_are_in_proportion() -> None:
    curve = [(1.0, 10), (3.0, 30)]
    found = [windowed_over_time.made_by(curve, at_s) for at_s in (0.5, 2.0, 3.0)]
    assert found == pytest.approx([5.0, 20.0, 30.0])


def test_starts_are_compared_by_the_output_rate_of_their_meshes() -> None:
    found = windowed_starts.measure(Bench(quick=True))
    rows = windowed_starts.results(found)
    assert {row.claim.paper_value for row in rows} == set(STATED.values())
    assert all(row.our_value and row.a_a for row in rows)
    assert found.probes.keys() == found.leaves.keys()
