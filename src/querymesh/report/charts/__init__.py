"""Charts of plans, drawn."""
