"""The embedded log as an input and an output of the engine."""
