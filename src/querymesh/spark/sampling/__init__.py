"""What is known before a job runs: the plan's statistics, its files, bounded samples."""
