"""Routers that learn while tuples run: Eddies, by selectivity or by content (CBR)."""
