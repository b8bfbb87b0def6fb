"""Rate-based optimization: join trees by what they have given out by when (RBO)."""
