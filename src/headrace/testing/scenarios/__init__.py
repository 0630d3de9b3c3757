"""Scenarios: stories about event time, told as YAML, that are test, documentation and lesson in one."""
