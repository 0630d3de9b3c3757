"""Event time: the time of an epoch, of a record, the watermark, and lateness."""
