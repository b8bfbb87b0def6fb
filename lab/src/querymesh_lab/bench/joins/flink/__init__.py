"""Apache Flink as a contestant; `serve_jobs.py` runs in its environment and imports none of us."""
