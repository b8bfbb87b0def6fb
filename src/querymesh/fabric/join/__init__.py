"""Windowed joins on the fabric: arrivals, states, and the probes between them."""
