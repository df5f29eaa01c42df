"""The table port over real Delta tables."""
