"""From a profile to a mesh: sampling, searching, judging (QM § 4)."""
