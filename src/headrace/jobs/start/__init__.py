"""The start of a run: acceptance, topics, query, restarts."""
