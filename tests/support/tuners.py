"""A tuner of indices with settled prices, and what it sees."""

from collections import Counter

from querymesh.cost.index_cost import Prices
from querymesh.index.tune.indexing import Indexing
from querymesh.index.tune.prices import IndexPrices
from querymesh.index.tune.tuner import Attributes, Load, Tuner

PRICES = IndexPrices(Prices(0.001, 0.001), 0.01, 0.01, 0.05, 0.05)
THREE = Attributes(3, 0)
ONE = Attributes(1, 0)
COMPARING = IndexPrices(Prices(0.0, 1.0), 0.0, 0.0, 0.0, 0.0, 0.0)
TABLE_2 = {(0,): 4, (1,): 10, (2,): 10, (0, 1): 4, (0, 2): 16, (1, 2): 10, (0, 1, 2): 46}
"""AMRI Table 2: by access pattern the percent of the requests."""

NOW = {"first": 100, "window": 1000, "every": 1000, "steps": 1}


def tuner(kind, states=("s",), attributes=THREE, prices=PRICES, **settings):
    how = Indexing(**{**NOW, **settings})
    return Tuner(kind, dict.fromkeys(states, attributes), how, lambda: prices)


def load(requests, arrived=100, stored=10_000, largest=4096):
    return Load(Counter(requests), arrived, stored, largest)
