"""The Python front end: every method only builds plan nodes."""
