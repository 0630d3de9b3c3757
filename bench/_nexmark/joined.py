"""Queries that join streams, windows and tables: Q3 to Q9, Q13, Q20."""

from __future__ import annotations

import headrace as hr
from headrace.api.stream import Stream, Table

from .auctions import averages_of_the_last, winners
from .site import Site

# A bid comes at most some seconds before its auction, or after that was new.
_NEAR = "1 minute"


def q3(site: Site) -> Table:
    """Who sells in one category, in three states."""
    auctions = site.auction.where("category = 10").select("id, seller, dateTime").to_table("id")
    people = site.person.where("state in ('OR', 'ID', 'CA')").select("id, name, city, state, dateTime").to_table("id")
    return auctions.join(people, on={"seller": "id"}, ttl=None).select("name, city, state, id")


def _bids_in_time(site: Site) -> Stream:
    """Each auction with each bid on it, from its beginning until it expires."""
    within = ("0 seconds", site.longest_auction)
    return site.auction.join_within(site.bid, on={"id": "auction"}, within=within, where="dateTime_right <= expires")


def q4(site: Site) -> Table:
    """The average of the final prices of each category."""
    final = _bids_in_time(site).group(["id", "category"], ttl=None).agg(final="max(price)")
    return final.group("category", ttl=None).agg(final="avg(final)")


def q5(site: Site) -> Stream:
    """The auctions with the most bids of ten seconds, every two seconds."""
    counts = site.bid.window(hr.hopping("10 seconds", every="2 seconds"), by="auction").agg(num="count(*)")
    most = counts.window(hr.tumbling("2 seconds")).agg(most="max(num)").select("window_end, most")
    hottest = counts.join_within(most, on="window_end", within="2 seconds", where="num >= most")
    return hottest.select("auction, num, window_start")


def q6(site: Site) -> Stream:
    """The average price of the last eleven auctions that each person sold, whenever one ends."""
    sold = winners(_bids_in_time(site).select("id, seller, expires, price, dateTime_right as bid_at"))
    return averages_of_the_last(sold, 11)


def q7(site: Site) -> Stream:
    """The highest bids of each ten seconds."""
    highest = site.bid.window(hr.tumbling("10 seconds")).agg(price="max(price)").select("price, window_end")
    meanwhile = "dateTime between window_end - interval 10 seconds and window_end"
    bids = site.bid.select("auction, price, bidder, dateTime, extra")
    found = bids.join_within(highest, on="price", within="10 seconds", where=meanwhile)
    return found.select("auction, price, bidder, dateTime, extra")


def q8(site: Site) -> Stream:
    """Who has come and opened an auction in the same ten seconds."""
    ten = hr.tumbling("10 seconds")
    new = site.person.window(ten, by=["id", "name"]).agg(times="count(*)").select("id, name, window_start")
    opened = site.auction.window(ten, by="seller").agg(auctions="count(*)").select("seller, window_start")
    both = new.join_within(opened, on={"id": "seller", "window_start": "window_start"}, within="0 seconds")
    return both.select("id, name, window_start as starttime")


def q9(site: Site) -> Table:
    """The winning bid of each auction."""
    best = _bids_in_time(site).top(1, by="price", per="id", rank="place")
    bid = "id as auction, bidder, price, dateTime_right as bid_dateTime, extra_right as bid_extra"
    return best.select("id, seller, category, place", bid)


def q13(site: Site) -> Stream:
    """Bids, each with a text from the table."""
    bids = site.bid.with_columns(side="auction % 10000").join(site.side, on={"side": "key"})
    return bids.select("auction, bidder, price, dateTime, value")


def q20(site: Site) -> Stream:
    """Bids with all there is to say of their auction, in one category."""
    auctions = site.auction.where("category = 10").select(
        "id, itemName, description, initialBid, reserve, dateTime as auction_dateTime, expires, seller, category, extra as auction_extra"
    )
    return site.bid.join_within(auctions, on={"auction": "id"}, within=_NEAR)
