"""The search for a partition of the training tuples (QM § 4.6 and 4.7)."""
