"""Kills an app's job again and again while records come in, and compares what it did with a run in which nothing happened."""
