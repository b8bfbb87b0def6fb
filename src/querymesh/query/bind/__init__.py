"""From a query and the schemas of its inputs to operators that can be reordered."""
