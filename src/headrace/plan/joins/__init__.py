"""Joins as declared: streams within a time, a stream with a table, with a table as of a time, and two tables."""
