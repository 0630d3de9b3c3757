"""One folder a system, the same file names in each: what reads from it and what writes to it."""
