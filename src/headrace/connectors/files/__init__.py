"""Files of records: NDJSON, CSV and Parquet."""
