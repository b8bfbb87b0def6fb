"""What runs inside Flink's own virtual environment; nothing here may import the rest of us."""
