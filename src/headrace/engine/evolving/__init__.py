"""State that goes on in a changed program: moved between shards, and snapshots for new outputs."""
