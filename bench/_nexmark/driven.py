"""A query in virtual time: its app in the test driver, over events as they came."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import polars as pl

from headrace.api.declaration import Declaration
from headrace.core.remarks import PlanWarning
from headrace.testing.driver import TestDriver

from .events import Events, Tables
from .queries import OUT, QUERIES
from .site import Site, side_rows


def driven(query: str, events: Events, batches: Sequence[Tables], *, partitions: int = 2, restarts: bool = False) -> pl.DataFrame:
    """What a query gives; raises if a record is late. With `restarts` it crashes after every batch."""
    app, reads = Declaration(query), QUERIES[query].reads
    QUERIES[query].output(app, Site(app, longest_auction=events.longest_auction))
    with warnings.catch_warnings():
        # Windows by the wall clock are what one query asks for.
        warnings.simplefilter("ignore", PlanWarning)
        driver = TestDriver(app, partitions=partitions)
    with driver:
        if "side" in reads:
            driver.send("side", side_rows())
        for batch in batches:
            for stream in (stream for stream in reads if stream != "side"):
                driver.send(stream, batch[stream])
            if restarts:
                driver.restart()
        driver.end()
        late = {stream: len(driver.late(stream)) for stream in reads if stream != "side"}
        if any(late.values()):
            raise ValueError(f"{query}: there are late records: {late}")
        return pl.DataFrame(driver.rows(OUT), infer_schema_length=None)
