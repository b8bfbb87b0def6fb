"""A guarantee that breaks is noticed within a stated number of rows; one that holds, never."""

import numpy as np
import pytest

from querymesh.query.costly.proxy.audit import Audit
from querymesh.query.costly.proxy.options import Proxy
from querymesh.query.costly.proxy.watch import FALSE_ALARM, MOST_STARTS, Watch
from soak import SOAK

PASSING, CLEAR = 0.3, 0.8
BATCH = 500


def batch(rng: np.random.Generator, recall: float, precision: float, share: float = 0.02) -> Audit:
    """What is reported of a batch when recall and precision are such ones."""
    kept, lost = PASSING * recall, PASSING * (1 - recall)
    wrong = kept * (1 - precision) / precision
    others = 1 - PASSING - wrong
    chances = [
        kept * CLEAR, lost, wrong, others * CLEAR, kept * (1 - CLEAR), others * (1 - CLEAR)
    ]  # fmt: skip
    true, lost_rows, wrong_rows, false, asked_true, asked_false = rng.multinomial(BATCH, chances)
    found = [int(rng.binomial(rows, share)) for rows in (true, lost_rows, wrong_rows, false)]
    return Audit(
        int(asked_true + asked_false), int(asked_true),
        int(true + wrong_rows), found[0] + found[2], found[2],
        int(false + lost_rows), found[3] + found[1], found[1],
    )  # fmt: skip


def noticed(seed: int, before: int, recall: float, precision: float, rows: int) -> int | None:
    """After how many rows of a broken guarantee that is noticed, so many good ones before."""
    rng, watch = np.random.default_rng(seed), Watch(Proxy())
    for _ in range(before // BATCH):
        assert watch.add(batch(rng, 0.97, 0.97)) is None, "a false alarm"
    for at in range(rows // BATCH):
        if watch.add(batch(rng, recall, precision)) is not None:
            return (at + 1) * BATCH
    return None


@pytest.mark.parametrize(
    ("recall", "precision", "within"),
    [(0.5, 0.97, 10_000), (0.97, 0.5, 10_000), (0.7, 0.97, 25_000), (0.97, 0.7, 25_000)],
)
@pytest.mark.parametrize("before", [0, 50_000])
def test_a_broken_guarantee_is_noticed(
    recall: float, precision: float, within: int, before: int
) -> None:
    """Of 30 % passing rows, by an audit of 2 %."""
    for seed in range(100 if SOAK else 10):
        assert noticed(seed, before, recall, precision, within) is not None


def test_what_broke_is_named() -> None:
    rng, watch = np.random.default_rng(0), Watch(Proxy())
    while watch.add(batch(rng, 0.4, 0.99)) is None:
        pass
    assert watch.problem is not None
    assert watch.problem.startswith("recall is no longer 95%: ")
    watch = Watch(Proxy())
    while watch.add(batch(rng, 0.99, 0.4)) is None:
        pass
    assert str(watch.problem).startswith("precision is no longer 95%: ")


def test_a_problem_stays_one() -> None:
    rng, watch = np.random.default_rng(0), Watch(Proxy())
    while (problem := watch.add(batch(rng, 0.4, 0.99))) is None:
        pass
    for _ in range(20):
        assert watch.add(batch(rng, 1.0, 1.0)) == problem


def alarms(runs: int, batches: int, quality: float, share: float = 0.02) -> int:
    """How many of some streams of one quality raise an alarm."""
    found = 0
    for seed in range(runs):
        rng, watch = np.random.default_rng(seed), Watch(Proxy(audit=share))
        for _ in range(batches):
            watch.add(batch(rng, quality, quality, share))
        found += watch.problem is not None
    return found


def test_a_hundred_streams_as_proxies_are_calibrated_raise_no_alarm() -> None:
    assert alarms(100, 400 if SOAK else 60, quality=0.97) == 0


def test_false_alarms_are_as_rare_as_stated_where_the_guarantee_only_just_holds() -> None:
    """There the chance of an alarm is as great as it can be: 1 in 1000 streams, however long."""
    assert FALSE_ALARM == 0.001
    runs, at_most = (3000, 9) if SOAK else (150, 2)  # 3 of 3000, 0.15 of 150 are to be expected
    assert alarms(runs, 60, quality=0.95) <= at_most
    assert alarms(runs, 30, quality=0.95, share=1.0) <= at_most


def test_reports_may_come_in_any_order_and_in_any_pieces() -> None:
    rng = np.random.default_rng(1)
    reports = [batch(rng, 0.8, 0.9) for _ in range(4)]
    one, other = Watch(Proxy()), Watch(Proxy())
    for report in reports:
        one.add(report)
    other.add(reports[3].plus(reports[1]))
    other.add(reports[0].plus(reports[2]))
    assert one.total == other.total
    assert (one.problem is None) == (other.problem is None)


def test_what_is_remembered_is_bounded() -> None:
    rng, watch = np.random.default_rng(1), Watch(Proxy())
    for _ in range(5 * MOST_STARTS * 4):
        watch.add(batch(rng, 0.98, 0.98))
    assert watch.problem is None
    assert len(watch._starts) <= MOST_STARTS


@pytest.mark.parametrize(
    "options", [Proxy(audit=0.0), Proxy(recall=1.0), Proxy(precision=1.0), Proxy(audit=1.0)]
)
def test_any_options_can_be_watched(options: Proxy) -> None:
    watch = Watch(options)
    for report in (Audit(), Audit(asked=10, passed=3), Audit(clear_true=5, audited_true=5)):
        assert watch.add(report) is None


def test_without_an_audit_nothing_is_noticed() -> None:
    watch = Watch(Proxy(audit=0.0))
    assert watch.add(Audit(asked=1000, passed=900, clear_false=100_000)) is None
