"""Queries of one source on Spark: Catalyst expressions, or the fabric in Arrow tasks."""
