"""Joins at work: pairs of rows, entrances of both sides, and one operator a kind of join."""
