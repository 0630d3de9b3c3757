"""Strings: functions, letters, patterns, and values read from text."""
