"""Aggregates: partial results, their merge, and the final value, over the columns of many groups."""
