"""Reasons why a job has no output: rules over measured facts, each with its remedy."""
