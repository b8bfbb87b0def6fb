"""Planners of a running join: what a round has shown, and the orders for the next."""
