"""HTTP, SSE and WebSocket: routes, security, documents, metrics."""
