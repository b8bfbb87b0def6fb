from __future__ import annotations

from collections import defaultdict

import pytest

from querymesh.demo import market
from querymesh.demo.predicates import ROW_TESTS


def test_the_same_seed_gives_the_same_market() -> None:
    assert market.ticks(50, 1).equals(market.ticks(50, 1))
    assert not market.ticks(50, 1).equals(market.ticks(50, 2))
    assert market.news(1).equals(market.news(1))
    assert market.research(1).equals(market.research(1))


@pytest.mark.parametrize(
    ("predicate", "temper"),
    [("matches_bullish", "bullish"), ("upbeat", "upbeat"), ("unusual_volume", "unusual")],
)
def test_predicates_find_each_sector_to_be_of_its_temper(predicate: str, temper: str) -> None:
    table = market.ticks(3000, 7)
    test, column = ROW_TESTS[predicate]
    answers = defaultdict(list)
    for sector, value in zip(table["sector"].to_pylist(), table[column].to_pylist(), strict=True):
        answers[sector].append(test(value))
    for sector, given in answers.items():
        wanted = getattr(market.SECTORS[sector], temper)
        assert sum(given) / len(given) == pytest.approx(wanted, abs=0.1), sector
