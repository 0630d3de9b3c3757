"""Indexes for searching text as outputs of the engine: one in a directory, or one of OpenSearch or Elasticsearch."""
