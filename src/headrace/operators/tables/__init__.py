"""Tables by key: groups, the latest record, dedup, the previous record, top."""
