"""Rate-based optimization, § 5."""
