"""What a task does beside running tuples: fetch its router, profile, report."""
