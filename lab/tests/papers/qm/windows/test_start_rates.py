"""QM's Figure 13 on windowed streams."""

from __future__ import annotations

from querymesh_lab.bench.case import Bench
from querymesh_lab.papers.qm.starts import STATED
from querymesh_lab.papers.qm.windows import start_rates


def test_starts_are_compared_by_the_output_rate_of_their_meshes() -> None:
    found = start_rates.measure(Bench(quick=True))
    rows = start_rates.results(found)
    assert {row.claim.paper_value for row in rows} == set(STATED.values())
    assert all(row.our_value and row.a_a for row in rows)
    assert found.probes.keys() == found.leaves.keys()
