"""What filters and look-ups gain from a mesh."""
