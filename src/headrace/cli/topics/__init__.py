"""Commands on topics and their readers."""
