"""What operators do and cost, measured on samples and on this machine."""
