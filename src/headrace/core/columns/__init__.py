"""Columns: their types and values, keys and their hash, names."""
