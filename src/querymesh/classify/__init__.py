"""Which data: the decision tree that tells which tuples share a route."""
