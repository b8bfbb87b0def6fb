"""Probing states: what is asked of them, and the program that takes tuples through several."""
