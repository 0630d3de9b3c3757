"""Event times explained: what becomes of one in a plan."""
