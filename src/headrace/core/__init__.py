"""Foundations without a dependency of ours: errors, durations, the clock, schema types, settings, secrets."""
