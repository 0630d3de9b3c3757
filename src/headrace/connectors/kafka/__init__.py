"""Kafka as a source of the engine."""
