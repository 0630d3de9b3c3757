"""Scenarios: stories about event time in YAML, each a test, documentation and a lesson in one."""
