"""Any service that takes requests over HTTP as an output of the engine."""
