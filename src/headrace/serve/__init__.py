"""Views over HTTP, server-sent events and WebSocket: pull, push, SQL, and records in."""
