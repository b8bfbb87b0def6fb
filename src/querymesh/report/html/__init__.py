"""Meshes as one HTML page with everything in it."""
