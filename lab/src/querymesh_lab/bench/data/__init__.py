"""Data for measurements: generated from a seed, or read from files of others."""
