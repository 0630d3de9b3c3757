"""Upkeep of a log: retention, compaction, repair."""
