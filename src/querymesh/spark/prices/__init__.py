"""What conditions cost in Catalyst: timed there, or by a table of prices that fits this machine."""
