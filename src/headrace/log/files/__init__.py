"""The files of a partition: segments, frames, index, appends, recovery."""
