"""Answers that the workers of a job have in common: who asks what, and what was answered."""
