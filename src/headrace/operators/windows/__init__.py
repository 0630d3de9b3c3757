"""Windows: assignment, panes, sessions, emission of results."""
