"""From SQL text, or a list of conditions, to an immutable query."""
