"""What runs a case of `bench join` as a Spark streaming query: our join, and Spark's own chain."""
