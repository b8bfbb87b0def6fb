"""The cells of `bench costly`, a module for each group."""
