"""What is asked: SQL text and Python predicates, as an immutable, validated query."""
