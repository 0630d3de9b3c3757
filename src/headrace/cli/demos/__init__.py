"""What `headrace demo` shows, one file a part."""
