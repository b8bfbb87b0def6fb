"""Stored rows and how they are found: partitions, indices, and the STeM over them."""
