"""Spark's parent of Python workers, with all loaded that a worker needs: each of them is a fork of it, ready at once.

Here modules are only loaded: a library that had threads at work could not be forked.
"""

from __future__ import annotations

import pandas as pd  # noqa: F401 - Spark's Python state API loads it
from pyspark.daemon import manager

from headrace.spark import evaluation, level, reading, transformation, writing  # noqa: F401
from headrace.spark.worker import settle

if __name__ == "__main__":
    settle()
    manager()
