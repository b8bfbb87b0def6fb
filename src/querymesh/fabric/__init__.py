"""How it runs: operators, rusters, route tokens, and the self-routing fabric they travel in."""
