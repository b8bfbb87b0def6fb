import numpy as np
import pytest

from querymesh_lab.bench.joins.bare_probe import AT_ONCE, BareProbe


@pytest.mark.parametrize("asked_rows", [0, 1, AT_ONCE, 5 * AT_ONCE + 3])
def test_a_bare_probe_finds_every_stored_row_of_the_codes_it_is_asked_for(asked_rows):
    probe = BareProbe(window_rows=500, matches=2.0)
    asked = np.random.default_rng(1).integers(0, 260, asked_rows)
    stored = probe.index.codes
    assert probe.found(asked) == sum(int((stored == code).sum()) for code in asked)


def test_its_time_is_told_by_probe():
    assert 0 < BareProbe(window_rows=2_000, matches=0.5).ns_a_probe(1_000, rounds=1) < 1e5
