"""State of a changed program: what is kept, moved between shards, and sent to new outputs."""
