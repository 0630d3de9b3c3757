"""Queries over all bids so far, by day, by key, and the best or last of each: Q15 to Q19."""

from __future__ import annotations

from headrace.api.stream import Stream, Table

from .site import Site

BANDS = {"rank1": "price < 10000", "rank2": "price >= 10000 and price < 1000000", "rank3": "price >= 1000000"}


def _in_bands(name: str, aggregate: str) -> dict[str, str]:
    """An aggregate of all bids and of those in each band of prices."""
    return {f"total_{name}": aggregate} | {f"{band}_{name}": f"{aggregate} filter (where {where})" for band, where in BANDS.items()}


def _by_day(site: Site) -> Stream:
    return site.bid.with_columns(day="date_format(dateTime, 'yyyy-MM-dd')")


def q15(site: Site) -> Table:
    """Bids, bidders and auctions of each day."""
    bidders, auctions = _in_bands("bidders", "count(distinct bidder)"), _in_bands("auctions", "count(distinct auction)")
    return _by_day(site).group("day", ttl=None).agg(**_in_bands("bids", "count(*)"), **bidders, **auctions)


def q16(site: Site) -> Table:
    """The same for each channel."""
    bidders, auctions = _in_bands("bidders", "count(distinct bidder)"), _in_bands("auctions", "count(distinct auction)")
    last = {"minute": "max(date_format(dateTime, 'HH:mm'))"}
    return _by_day(site).group(["channel", "day"], ttl=None).agg(**last, **_in_bands("bids", "count(*)"), **bidders, **auctions)


def q17(site: Site) -> Table:
    """The prices of each auction and day."""
    prices = {f"{name}_price": f"{name}(price)" for name in ("min", "max", "avg", "sum")}
    return _by_day(site).group(["auction", "day"], ttl=None).agg(**_in_bands("bids", "count(*)"), **prices)


def q18(site: Site) -> Table:
    """The last bid of each person on each auction."""
    return site.bid.to_table(["bidder", "auction"])


def q19(site: Site) -> Table:
    """The ten best bids of each auction."""
    return site.bid.top(10, by="price", per="auction", rank="rank_number")
