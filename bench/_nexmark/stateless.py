"""Queries that look at one bid at a time: Q0, Q1, Q2, Q10, Q14, Q21, Q22."""

from __future__ import annotations

from headrace.api.stream import Stream

from .site import Site

_CHANNEL_ID = r"regexp_extract(url, '(&|^)channel_id=([^&]*)', 2)"


def q0(site: Site) -> Stream:
    """Pass everything on."""
    return site.bid.select("auction, bidder, price, dateTime, extra")


def q1(site: Site) -> Stream:
    """Prices in euros."""
    return site.bid.select("auction, bidder, 0.908 * price as price, dateTime, extra")


def q2(site: Site) -> Stream:
    """The bids on some auctions."""
    return site.bid.where("auction % 123 = 0").select("auction, price")


def q10(site: Site) -> Stream:
    """All bids with the day and the minute by which files are kept apart."""
    day, minute = "date_format(dateTime, 'yyyy-MM-dd') as dt", "date_format(dateTime, 'HH:mm') as hm"
    return site.bid.select("auction, bidder, price, dateTime, extra", day, minute)


def q14(site: Site) -> Stream:
    """Middling prices, the time of day by name, and a count of letters."""
    euros = site.bid.with_columns(price="0.908 * price").where("price > 1000000 and price < 50000000")
    time_of_day = (
        "case when hour(dateTime) between 8 and 18 then 'dayTime' "
        "when hour(dateTime) <= 6 or hour(dateTime) >= 20 then 'nightTime' else 'otherTime' end as bidTimeType"
    )
    letters = "length(extra) - length(replace(extra, 'c', '')) as c_counts"
    return euros.select("auction, bidder, price", time_of_day, "dateTime, extra", letters)


def q21(site: Site) -> Stream:
    """The number of each channel: of four by their names, of the others from the address."""
    names = "case lower(channel) when 'apple' then '0' when 'google' then '1' when 'facebook' then '2' when 'baidu' then '3'"
    known = site.bid.where(f"{_CHANNEL_ID} <> '' or lower(channel) in ('apple', 'google', 'facebook', 'baidu')")
    return known.select("auction, bidder, price, channel", f"{names} else {_CHANNEL_ID} end as channel_id")


def q22(site: Site) -> Stream:
    """The directories of an address."""
    directories = ", ".join(f"split_part(url, '/', {place + 3}) as dir{place}" for place in (1, 2, 3))
    return site.bid.select("auction, bidder, price, channel", directories)
