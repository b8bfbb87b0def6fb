"""Outcomes of operators foretold from what a row holds, where no column tells the kinds apart."""
