"""The answer of each query by DuckDB: the same events as plain tables, each query as SQL over all of them."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import polars as pl
import pyarrow as pa

from .events import Tables
from .grouped import BANDS
from .site import side_rows

# Averages are rounded by each engine in its own way.
_NEAR = 1e-9
_EURO = "cast(price as decimal(18, 3)) * 0.908"
_WINNERS = """
    select A.*, B.auction, B.bidder, B.price, B.dateTime as bid_dateTime, B.extra as bid_extra
    from auction A join bid B on A.id = B.auction and B.dateTime between A.dateTime and A.expires
    qualify row_number() over (partition by A.id order by B.price desc, B.dateTime) = 1"""
_HOPS = """
    select auction, start, sum(n)::bigint as num from (
        select auction, time_bucket(interval '2 seconds', dateTime) - to_seconds(2 * back) as start, n
        from (select auction, dateTime, 1 as n from bid), range(5) as r(back))
    group by all"""
_CHANNEL = r"regexp_extract(url, '(&|^)channel_id=([^&]*)', 2)"


def _bands(name: str, aggregate: str) -> str:
    parts = [f"{aggregate} as total_{name}", *(f"{aggregate} filter (where {where}) as {band}_{name}" for band, where in BANDS.items())]
    return ", ".join(parts)


_DISTINCT = ", ".join(
    (_bands("bids", "count(*)"), _bands("bidders", "count(distinct bidder)"), _bands("auctions", "count(distinct auction)"))
)
_DAY = "strftime(dateTime, '%Y-%m-%d') as day"

SQL = {
    "q0": "select auction, bidder, price, dateTime, extra from bid",
    "q1": f"select auction, bidder, {_EURO} as price, dateTime, extra from bid",
    "q2": "select auction, price from bid where auction % 123 = 0",
    "q3": """select P.name, P.city, P.state, A.id from auction A join person P on A.seller = P.id
             where A.category = 10 and P.state in ('OR', 'ID', 'CA')""",
    "q4": """select category, avg(final) as final from (
               select A.category, max(B.price) as final from auction A join bid B on A.id = B.auction
               where B.dateTime between A.dateTime and A.expires group by A.id, A.category) group by category""",
    "q5": f"""select auction, num, start as window_start from ({_HOPS}) qualify num = max(num) over (partition by start)""",
    "q6": f"""select seller, id, avg(price) over (partition by seller order by expires, id rows between 10 preceding and current row)
              as average from ({_WINNERS})""",
    "q7": """select B.auction, B.price, B.bidder, B.dateTime, B.extra from bid B join (
               select max(price) as price, time_bucket(interval '10 seconds', dateTime) + interval '10 seconds' as window_end
               from bid group by window_end) M
             on B.price = M.price and B.dateTime between M.window_end - interval '10 seconds' and M.window_end""",
    "q8": """select P.id, P.name, P.starttime from (
               select distinct id, name, time_bucket(interval '10 seconds', dateTime) as starttime from person) P
             join (select distinct seller, time_bucket(interval '10 seconds', dateTime) as starttime from auction) A
             on P.id = A.seller and P.starttime = A.starttime""",
    "q9": f"select id, seller, category, auction, price, bid_dateTime from ({_WINNERS})",
    "q10": """select auction, bidder, price, dateTime, extra, strftime(dateTime, '%Y-%m-%d') as dt, strftime(dateTime, '%H:%M') as hm
              from bid""",
    "q11": """select bidder, count(*) as bid_count, min(dateTime) as starttime, max(dateTime) + interval '10 seconds' as endtime from (
                select *, sum(fresh) over (partition by bidder order by dateTime) as session from (
                  select bidder, dateTime,
                    (dateTime - lag(dateTime) over (partition by bidder order by dateTime) < interval '10 seconds')::int as joins,
                    1 - coalesce(joins, 0) as fresh from bid))
              group by bidder, session""",
    "q12": "select bidder, count(*) as bid_count from bid group by bidder",
    "q13": "select auction, bidder, price, dateTime, value from bid join side on auction % 10000 = key",
    "q14": f"""select auction, bidder, {_EURO} as price, case when hour(dateTime) between 8 and 18 then 'dayTime'
                 when hour(dateTime) <= 6 or hour(dateTime) >= 20 then 'nightTime' else 'otherTime' end as bidTimeType,
                 dateTime, extra, len(extra) - len(replace(extra, 'c', '')) as c_counts
               from bid where {_EURO} > 1000000 and {_EURO} < 50000000""",
    "q15": f"select {_DAY}, {_DISTINCT} from bid group by day",
    "q16": f"select channel, {_DAY}, max(strftime(dateTime, '%H:%M')) as minute, {_DISTINCT} from bid group by channel, day",
    "q17": f"""select auction, {_DAY}, {_bands("bids", "count(*)")}, min(price) as min_price, max(price) as max_price,
               avg(price) as avg_price, sum(price)::bigint as sum_price from bid group by auction, day""",
    "q18": """select auction, bidder, price, channel, url, dateTime, extra from bid
              qualify row_number() over (partition by bidder, auction order by dateTime desc, arrival desc) = 1""",
    "q19": """select auction, price, dateTime, row_number() over (partition by auction order by price desc, dateTime) as rank_number
              from bid qualify rank_number <= 10""",
    "q20": """select B.auction, B.bidder, B.price, B.channel, B.url, B.dateTime, B.extra, A.itemName, A.description, A.initialBid,
                A.reserve, A.dateTime as auction_dateTime, A.expires, A.seller, A.category, A.extra as auction_extra
              from bid B join auction A on B.auction = A.id where A.category = 10""",
    "q21": f"""select auction, bidder, price, channel, case lower(channel) when 'apple' then '0' when 'google' then '1'
                 when 'facebook' then '2' when 'baidu' then '3' else {_CHANNEL} end as channel_id
               from bid where {_CHANNEL} <> '' or lower(channel) in ('apple', 'google', 'facebook', 'baidu')""",
    "q22": """select auction, bidder, price, channel, split_part(url, '/', 4) as dir1, split_part(url, '/', 5) as dir2,
              split_part(url, '/', 6) as dir3 from bid""",
}


class Answers:
    """DuckDB over some events, in the order in which they came."""

    def __init__(self, batches: Sequence[Tables]) -> None:
        self._database = duckdb.connect()
        self._database.execute("set TimeZone = 'UTC'")
        for name in ("person", "auction", "bid"):
            whole = pa.concat_tables([batch[name] for batch in batches])
            self._database.register(name, whole.append_column("arrival", pa.array(range(whole.num_rows), pa.int64())))
        self._database.register("side", side_rows())

    def of(self, query: str) -> pl.DataFrame:
        found = pl.from_arrow(self._database.sql(SQL[query]).to_arrow_table())
        assert isinstance(found, pl.DataFrame)
        return found


def difference(got: pl.DataFrame, expected: pl.DataFrame) -> str:
    """What is not the same in the columns that are expected, in whatever order the rows are; empty if nothing is."""
    if got.height != expected.height:
        return f"{got.height:,} rows, not {expected.height:,}"
    mine, theirs = (_ordered(frame.select(expected.columns)) for frame in (got, expected))
    for name in expected.columns:
        left, right = mine.get_column(name), theirs.get_column(name)
        near = left.dtype.is_float()
        same = ((left - right).abs() <= _NEAR * right.abs()).fill_null(False) if near else left.eq_missing(right)
        if not same.all():
            place = int((~same).arg_true()[0])
            return f"{name}: {left[place]!r}, not {right[place]!r}, in {theirs.row(place, named=True)}"
    return ""


def _ordered(frame: pl.DataFrame) -> pl.DataFrame:
    """Times and decimals in one unit, and rows in the order of their exact columns."""
    plain = frame.select(
        pl.col(name).dt.epoch("us") if kind.is_temporal() else pl.col(name).cast(pl.Decimal(38, 3)) if kind.is_decimal()
        else pl.col(name).cast(pl.Int64) if kind.is_integer() else pl.col(name)
        for name, kind in frame.schema.items()
    )  # fmt: skip
    return plain.sort([name for name, kind in plain.schema.items() if not kind.is_float()])
