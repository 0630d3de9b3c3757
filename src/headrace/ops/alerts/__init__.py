"""Alerts over the facts of jobs: measured, judged, told once and resolved once."""
