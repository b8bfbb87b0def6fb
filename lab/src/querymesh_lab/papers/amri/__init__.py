"""The adaptive multi-route index, § 9."""
