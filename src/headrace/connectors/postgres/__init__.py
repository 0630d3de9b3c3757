"""PostgreSQL as an output of the engine."""
