"""A running query, line by line."""
