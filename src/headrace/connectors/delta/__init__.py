"""A Delta table as an output of the engine: tasks stage an epoch, the driver commits it."""
