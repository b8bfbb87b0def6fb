"""What one sees: a mesh and its runs as text, as one HTML page with plots, and live progress."""
