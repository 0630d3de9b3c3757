"""Aggregations as declared: calls, rules of functions, nodes."""
