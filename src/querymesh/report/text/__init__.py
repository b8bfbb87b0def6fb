"""Meshes, runs, routers, planners and indices as text."""
