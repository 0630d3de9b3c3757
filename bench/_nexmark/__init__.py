"""Nexmark: an auction site in three streams, 23 queries over them, and the same queries in the SQL of each peer."""
