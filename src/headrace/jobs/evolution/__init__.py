"""Evolution of a job to another version of its app: the changes, and the takeover of its state."""
