"""Join state as files, versioned by batch."""
