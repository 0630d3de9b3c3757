"""The embedded log as a source and a sink of Spark."""
