"""From a profile to a mesh: sampling, searching, judging, pruning (QM § 4)."""
