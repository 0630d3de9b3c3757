"""Open files: waiting for one, and their number."""

import gc
import select
from pathlib import Path


def readable(descriptor: int, seconds: float) -> bool:
    """Whether there is something to read, or nobody left to write it; `select.select` knows only the first 1,024 descriptors."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def open_files() -> int:
    """The number of open files of this process; objects that only the collector frees do not count."""
    gc.collect()
    return len(list(Path("/dev/fd").iterdir()))
