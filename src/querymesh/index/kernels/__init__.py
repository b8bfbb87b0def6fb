"""The inner loops, compiled, each with the numpy version it must equal."""
