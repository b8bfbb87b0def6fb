"""The `querymesh` command."""
