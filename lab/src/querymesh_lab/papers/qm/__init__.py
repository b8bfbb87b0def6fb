"""Query Mesh, § 6."""
