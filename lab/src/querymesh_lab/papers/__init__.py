"""The papers' experiments again, on this engine: `querymesh reproduce`."""
