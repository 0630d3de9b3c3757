"""Logic by key of Q6: the bid that wins an auction when it ends, and averages over the last rows of a key."""

from __future__ import annotations

import polars as pl

from headrace.api.stream import Stream

_MICROSECOND = 1


def winners(bids: Stream) -> Stream:
    """Of bids with the `expires` of their auction, the best of each auction, as soon as it is over; of equal ones the earliest."""
    state = "seller bigint, price bigint, bid_at timestamp"
    returns = "id bigint, seller bigint, price bigint, bid_at timestamp"
    return bids.process(_win, by="id", state=state, returns=returns, ttl="1 day", vectorized=True)


def _win(events: pl.DataFrame, states: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    known = states.filter(pl.col("price").is_not_null()).select("id", "seller", "price", "bid_at")
    rows = pl.concat([known, events.select("id", "seller", "price", "bid_at")])
    ordered = rows.sort("id", "price", "bid_at", descending=[False, True, False])
    best = ordered.unique("id", keep="first", maintain_order=True)
    over = states.filter(pl.col("fired_at").is_not_null()).select("id", _time="fired_at")
    ends = events.group_by("id").agg(pl.col("expires").first())
    results = best.join(over, on="id").select("id", "seller", "price", "bid_at", "_time")
    waiting = best.join(over, on="id", how="anti")
    timers = waiting.join(states.select("id", "timer_at"), on="id", how="left").join(ends, on="id", how="left")
    # One moment after the end, since a bid of the very end counts.
    due = pl.coalesce("timer_at", pl.col("expires") + pl.duration(microseconds=_MICROSECOND))
    return results, timers.with_columns(due.alias("timer_at")).drop("expires")


def averages_of_the_last(sold: Stream, count: int) -> Stream:
    """The average price of the last `count` rows of each seller, at every row; rows of one time follow by `id`."""

    def roll(events: pl.DataFrame, states: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        before = states.select("seller", "prices").explode("prices").drop_nulls().select("seller", price="prices")
        fresh = events.sort("seller", "_time", "id")
        known = before.with_columns(pl.lit(None, pl.Int64).alias("id"), pl.lit(None, fresh.schema["_time"]).alias("_time"))
        rows = pl.concat([known.select("seller", "id", "price", "_time"), fresh.select("seller", "id", "price", "_time")])
        average = pl.col("price").rolling_mean(count, min_samples=1).over("seller")
        results = rows.with_columns(average.alias("average")).filter(pl.col("id").is_not_null())
        prices = rows.group_by("seller", maintain_order=True).agg(pl.col("price").tail(count - 1).alias("prices"))
        kept = states.drop("prices").join(prices, on="seller", how="left").select(states.columns)
        return results.select("seller", "id", "average", "_time"), kept

    returns = "seller bigint, id bigint, average double"
    return sold.process(roll, by="seller", state="prices array<bigint>", returns=returns, ttl=None, vectorized=True)
