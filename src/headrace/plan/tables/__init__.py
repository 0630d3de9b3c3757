"""Steps that keep rows by key: the latest record, dedup, the previous record, top."""
