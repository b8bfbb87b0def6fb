"""Where each operator runs: in Catalyst, in Python, or as plain Spark would run it all."""
