"""An HTTP service as an output of the engine."""
