"""Epochs on one machine, planned and committed by a loop of ours; Spark runs their tasks."""
