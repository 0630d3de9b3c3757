"""Columns that the engine adds to records: their names, which no column of a user has."""

from __future__ import annotations

# The number of a record in its batch, by which its original is found.
ROW = "_row"
# The key of what is computed over all records.
ALL = "_all"
# The place where a record was read.
PARTITION, OFFSET = "_partition", "_offset"
