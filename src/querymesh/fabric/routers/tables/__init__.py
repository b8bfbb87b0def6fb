"""Eddies in chunks: what each class of tuples is told, as a table that a program follows."""
