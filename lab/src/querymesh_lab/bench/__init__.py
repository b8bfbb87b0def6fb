"""What it is worth: the measurements behind every number the documentation gives."""
