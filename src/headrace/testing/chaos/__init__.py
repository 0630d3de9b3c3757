"""Chaos: kills an app's job again and again while records arrive, and compares its results with those of an undisturbed run."""
