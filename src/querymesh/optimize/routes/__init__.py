"""The best order of operators for a set of tuples."""
