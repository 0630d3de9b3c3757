"""Connectors to other systems: one folder for each, with the same file names, for reading from it and writing to it."""
