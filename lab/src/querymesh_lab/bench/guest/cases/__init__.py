"""The cases of `bench guest`, one file for each family of data."""
