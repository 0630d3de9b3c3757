"""The `headrace` command: one file for each command, each of them parse, one call, render."""
