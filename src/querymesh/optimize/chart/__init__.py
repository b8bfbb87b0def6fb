"""Charts of plans: which one is best where, by output rate and memory (OM)."""
