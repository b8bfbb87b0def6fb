"""The decision tree that tells which tuples share a route, and how it is learned."""
