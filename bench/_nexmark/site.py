"""The streams of the auction site, as an app declares them: a query declares those that it reads and no other."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property

import pyarrow as pa

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.api.stream import Stream, Table

PERSON = "id bigint, name string, emailAddress string, creditCard string, city string, state string, dateTime timestamp, extra string"
AUCTION = (
    "id bigint, itemName string, description string, initialBid bigint, reserve bigint, dateTime timestamp, expires timestamp, "
    "seller bigint, category bigint, extra string"
)
BID = "auction bigint, bidder bigint, price bigint, channel string, url string, dateTime timestamp, extra string"
SIDE = "key bigint, value string"
SIDE_ROWS = 10_000
COLUMNS = {"person": PERSON, "auction": AUCTION, "bid": BID, "side": SIDE}
KEYS = {"person": "id", "auction": "id", "bid": "auction", "side": "key"}


class Site:
    """People, auctions and bids of an app, and the table that one query joins."""

    def __init__(self, app: Declaration, *, longest_auction: timedelta, delay: str = "4 seconds", partitions: int = 1) -> None:
        self._app, self._delay, self._partitions = app, delay, partitions
        self.longest_auction = longest_auction

    @cached_property
    def person(self) -> Stream:
        return self._events("person")

    @cached_property
    def auction(self) -> Stream:
        return self._events("auction")

    @cached_property
    def bid(self) -> Stream:
        return self._events("bid")

    @cached_property
    def side(self) -> Table:
        """The table: a text for each of ten thousand numbers."""
        more = {"partitions": self._partitions} if isinstance(self._app, hr.App) else {}
        return self._app.stream("side", SIDE, key="key", **more).to_table("key")

    def _events(self, name: str) -> Stream:
        watermark = hr.bounded(self._delay, idle="1 minute")
        more = {"partitions": self._partitions} if isinstance(self._app, hr.App) else {}
        return self._app.stream(name, COLUMNS[name], key=KEYS[name], time="dateTime", watermark=watermark, **more)


def side_rows() -> pa.Table:
    """The rows of the table."""
    keys = range(SIDE_ROWS)
    return pa.table({"key": pa.array(keys, pa.int64()), "value": pa.array([f"value-{key}" for key in keys], pa.string())})
