"""What a user's tests and ours stand on: real servers that start in a with-block."""
