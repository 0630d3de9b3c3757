"""The user's own logic by key, with state and timers."""
