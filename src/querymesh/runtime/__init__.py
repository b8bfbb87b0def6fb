"""How a run goes on: its counts, its loops, its files; the same whatever carries the tasks."""
