"""Python functions as conditions: called on batches, their results checked, failures traced."""
