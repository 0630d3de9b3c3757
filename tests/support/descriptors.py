"""Waiting for open files."""

import select


def readable(descriptor: int, seconds: float) -> bool:
    """Whether there is something to read, or nobody left to write it; `select.select` knows only the first 1,024 descriptors."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
