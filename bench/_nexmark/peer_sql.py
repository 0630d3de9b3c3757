"""The queries in the SQL of Spark and of Flink; each has the columns of DuckDB's answer. The names in braces are the tables."""

from __future__ import annotations

from .grouped import BANDS

EURO = "0.908 * price"
CHANNEL = "regexp_extract(url, '(&|^)channel_id=([^&]*)', 2)"
_NAMES = "('apple', 'google', 'facebook', 'baidu')"
_NUMBERS = "case lower(channel) when 'apple' then '0' when 'google' then '1' when 'facebook' then '2' when 'baidu' then '3' else"
_TIME_OF_DAY = """case when hour(`dateTime`) between 8 and 18 then 'dayTime'
    when hour(`dateTime`) <= 6 or hour(`dateTime`) >= 20 then 'nightTime' else 'otherTime' end"""


def bands(name: str, aggregate: str) -> str:
    """An aggregate of all bids and of those in each band of prices."""
    parts = [f"{aggregate} as total_{name}", *(f"{aggregate} filter (where {where}) as {band}_{name}" for band, where in BANDS.items())]
    return ", ".join(parts)


_DISTINCT = ", ".join((bands("bids", "count(*)"), bands("bidders", "count(distinct bidder)"), bands("auctions", "count(distinct auction)")))
_DAY = "date_format(`dateTime`, 'yyyy-MM-dd')"
_MINUTE = "date_format(`dateTime`, 'HH:mm')"

# What both write alike.
COMMON = {
    "q0": "select auction, bidder, price, `dateTime`, extra from {bid}",
    "q1": f"select auction, bidder, {EURO} as price, `dateTime`, extra from {{bid}}",
    "q2": "select auction, price from {bid} where mod(auction, 123) = 0",
    "q3": """select P.name, P.city, P.state, A.id from {auction} A join {person} P on A.seller = P.id
             where A.category = 10 and P.state in ('OR', 'ID', 'CA')""",
    "q4": """select category, avg(cast(final as double)) as final from (
               select A.category, max(B.price) as final from {auction} A join {bid} B on A.id = B.auction
               where B.`dateTime` between A.`dateTime` and A.expires group by A.id, A.category) Q group by category""",
    "q9": """select id, seller, category, auction, price, bid_dateTime from (
               select A.id, A.seller, A.category, B.auction, B.price, B.`dateTime` as bid_dateTime,
                 row_number() over (partition by A.id order by B.price desc, B.`dateTime`) as place
               from {auction} A join {bid} B on A.id = B.auction where B.`dateTime` between A.`dateTime` and A.expires) Q
             where place <= 1""",
    "q10": f"select auction, bidder, price, `dateTime`, extra, {_DAY} as dt, {_MINUTE} as hm from {{bid}}",
    "q13": """select B.auction, B.bidder, B.price, B.`dateTime`, S.`value` from {bid} B join {side} S on mod(B.auction, 10000) = S.`key`""",
    "q14": f"""select auction, bidder, {EURO} as price, {_TIME_OF_DAY} as bidTimeType, `dateTime`, extra,
                 char_length(extra) - char_length(replace(extra, 'c', '')) as c_counts
               from {{bid}} where {EURO} > 1000000 and {EURO} < 50000000""",
    "q15": f"select {_DAY} as `day`, {_DISTINCT} from {{bid}} group by {_DAY}",
    "q16": f"select channel, {_DAY} as `day`, max({_MINUTE}) as `minute`, {_DISTINCT} from {{bid}} group by channel, {_DAY}",
    "q17": f"""select auction, {_DAY} as `day`, {bands("bids", "count(*)")}, min(price) as min_price, max(price) as max_price,
               avg(cast(price as double)) as avg_price, sum(price) as sum_price from {{bid}} group by auction, {_DAY}""",
    "q18": """select auction, bidder, price, channel, url, `dateTime`, extra from (
                select *, row_number() over (partition by bidder, auction order by `dateTime` desc) as place from {bid}) Q
              where place <= 1""",
    "q19": """select auction, price, `dateTime`, rank_number from (
                select *, row_number() over (partition by auction order by price desc) as rank_number from {bid}) Q
              where rank_number <= 10""",
    "q20": """select B.auction, B.bidder, B.price, B.channel, B.url, B.`dateTime`, B.extra, A.itemName, A.description,
                A.initialBid, A.reserve, A.`dateTime` as auction_dateTime, A.expires, A.seller, A.category, A.extra as auction_extra
              from {bid} B join {auction} A on B.auction = A.id where A.category = 10""",
    "q21": f"""select auction, bidder, price, channel, {_NUMBERS} {CHANNEL} end as channel_id from {{bid}}
               where coalesce({CHANNEL}, '') <> '' or lower(channel) in {_NAMES}""",
}

_TUMBLE, _HOP = "window(`dateTime`, '10 seconds')", "window(`dateTime`, '10 seconds', '2 seconds')"

SPARK = COMMON | {
    "q5": f"""select A.auction, A.num, A.w.start as window_start
              from (select auction, count(*) as num, {_HOP} as w from {{bid}} group by auction, {_HOP}) A
              join (select max(num) as most, w from
                (select count(*) as num, {_HOP} as w from {{bid2}} group by auction, {_HOP}) group by w) M
              on A.w = M.w and A.num >= M.most""",
    "q7": f"""select B.auction, B.price, B.bidder, B.dateTime, B.extra from {{bid}} B
              join (select max(price) as most, {_TUMBLE}.end as ends from {{bid2}} group by {_TUMBLE}) M
              on B.price = M.most and B.dateTime between M.ends - interval 10 seconds and M.ends""",
    "q8": f"""select P.id, P.name, P.w.start as starttime
              from (select id, name, {_TUMBLE} as w from {{person}} group by id, name, {_TUMBLE}) P
              join (select seller, {_TUMBLE} as w from {{auction}} group by seller, {_TUMBLE}) A on P.id = A.seller and P.w = A.w""",
    "q11": """select bidder, n as bid_count, w.start as starttime, w.end as endtime
              from (select bidder, count(*) as n, session_window(dateTime, '10 seconds') as w
                    from {bid} group by bidder, session_window(dateTime, '10 seconds'))""",
    "q12": """select bidder, n as bid_count, w.start as starttime
              from (select bidder, count(*) as n, window(current_timestamp(), '10 seconds') as w
                    from {bid} group by bidder, window(current_timestamp(), '10 seconds'))""",
    "q22": """select auction, bidder, price, channel, split_part(url, '/', 4) as dir1, split_part(url, '/', 5) as dir2,
              split_part(url, '/', 6) as dir3 from {bid}""",
}
# Spark takes these only where changed rows may come again; the columns by which the last row is found, and what grows from row to row.
SPARK_UPDATES = {"q12": ("bidder", "starttime", "bid_count"), "q17": ("auction", "day", "total_bids")}

_WINDOWS = "window_start, window_end"


def _tvf(kind: str, table: str, sizes: str, by: str = "") -> str:
    return f"table({kind}(table {{{table}}}{by}, descriptor(`dateTime`), {sizes}))"


_TEN = _tvf("tumble", "bid", "interval '10' second")
_TWO = _tvf("hop", "bid", "interval '2' second, interval '10' second")

FLINK = COMMON | {
    "q5": f"""select A.auction, A.num, A.window_start from
                (select auction, count(*) as num, {_WINDOWS} from {_TWO} group by auction, {_WINDOWS}) A
              join (select max(num) as most, {_WINDOWS} from
                (select count(*) as num, {_WINDOWS} from {_TWO} group by auction, {_WINDOWS}) Q group by {_WINDOWS}) M
              on A.window_start = M.window_start and A.window_end = M.window_end and A.num >= M.most""",
    "q7": f"""select B.auction, B.price, B.bidder, B.`dateTime`, B.extra from {{bid}} B
              join (select max(price) as most, window_end from {_TEN} group by {_WINDOWS}) M on B.price = M.most
              where B.`dateTime` between M.window_end - interval '10' second and M.window_end""",
    "q8": f"""select P.id, P.name, P.window_start as starttime
              from (select id, name, {_WINDOWS} from {_tvf("tumble", "person", "interval '10' second")} group by id, name, {_WINDOWS}) P
              join (select seller, {_WINDOWS} from {_tvf("tumble", "auction", "interval '10' second")} group by seller, {_WINDOWS}) A
              on P.id = A.seller and P.window_start = A.window_start and P.window_end = A.window_end""",
    "q11": f"""select bidder, count(*) as bid_count, window_start as starttime, window_end as endtime
               from {_tvf("session", "bid", "interval '10' second", " partition by bidder")} group by bidder, {_WINDOWS}""",
    "q22": """select auction, bidder, price, channel, split_index(url, '/', 3) as dir1, split_index(url, '/', 4) as dir2,
              split_index(url, '/', 5) as dir3 from {bid}""",
}
