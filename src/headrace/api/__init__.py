"""What the user writes in Python: every method only builds plan nodes."""
