"""Which indices a state has: counted requests, chosen bits, when to change (AMRI)."""
