"""Texts of which one word tells, or does not tell, which operator drops a row."""

import numpy as np
import pyarrow as pa

from profiles import profile_of

COST_US = (2000.0, 2500.0, 3000.0)


def telling_texts(rows=300, seed=0, noise=False, cost_us=COST_US, after=None):
    """A kind's rows are dropped by one operator in nine of ten cases, by the others in one.

    The word `key0`, `key1` or `key2` among a dozen others is the kind, or with `noise` is drawn.
    """
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, rows)
    said = rng.integers(0, 3, rows) if noise else kind
    texts = [" ".join([*(f"word{w}" for w in rng.integers(0, 400, 12)), f"Key{k}."]) for k in said]
    outcomes = (rng.random((rows, 3)) < np.where(np.eye(3), 0.1, 0.9)[kind]).astype(float)
    sample = pa.table({"id": np.arange(rows), "body": texts})
    return profile_of(outcomes, cost_us, after, sample)


def columns_of(profile):
    """How a classifier is given the columns of a profile's sample."""
    return lambda name: profile.sample.column(name).combine_chunks()
