"""Which routes: search strategies over partitions of the training tuples."""
