"""What joins of windowed streams take, beside Spark's and Flink's."""
