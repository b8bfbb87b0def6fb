"""What is decided: a classifier and its routes, of one source or of a join, as data."""
