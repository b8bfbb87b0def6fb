"""Content-based routing, § 6."""
