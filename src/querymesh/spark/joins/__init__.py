"""Joins of windowed streams on Spark: shards of our own, or trees of Spark's joins."""
