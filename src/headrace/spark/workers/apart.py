"""Python processes of a stage of its own, so that no other task keeps it from the state in their memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext


def level_workers(number: int) -> str:
    """The name of the Python processes of a level."""
    return f"level {number}"


@contextmanager
def workers_apart(context: SparkContext, kind: str) -> Iterator[None]:
    """Give a stage that is declared here Python processes of its own: Spark has a separate daemon for each environment."""
    environment = context.environment
    environment["HEADRACE_WORKERS"] = kind
    try:
        yield
    finally:
        del environment["HEADRACE_WORKERS"]
