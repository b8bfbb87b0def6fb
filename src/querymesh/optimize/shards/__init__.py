"""How a join is spread over shards: a hypercube and its shares."""
