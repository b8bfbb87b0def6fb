"""QM on windowed streams: the join of ten of them, its rivals, and what they are asked."""
