"""The `headrace` command: one file a command, each of them parse, one call, render."""
