"""Where it runs: the thin layer between the fabric and Spark."""
