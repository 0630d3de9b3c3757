"""Redis as an output of the engine."""
