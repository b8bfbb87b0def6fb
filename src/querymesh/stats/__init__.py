"""What is known: samples and profiles."""
