"""Kafka as an input and an output of the engine."""
