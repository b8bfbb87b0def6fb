"""Keeping a mesh fitting while its data changes (QM § 5.3)."""
