"""The self-routing fabric: rusters, their tokens, and the operators they visit (QM § 5)."""
