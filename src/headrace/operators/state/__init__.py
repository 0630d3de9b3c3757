"""State of operators: blobs, keyed rows, chunks by time, due times."""
