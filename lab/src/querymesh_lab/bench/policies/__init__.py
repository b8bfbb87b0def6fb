"""All policies on the same data."""
