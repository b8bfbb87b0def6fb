"""Spark's Python workers: which Python they run, and how our tasks meet them."""
