"""Patterns of rows: their language, the conditions and measures over matched rows, and the step of a plan."""
