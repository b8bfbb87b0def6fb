"""What is known before a job runs: the plan's statistics, bounded samples, costs in Catalyst."""
