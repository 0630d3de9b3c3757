"""Commands that serve or query views."""
