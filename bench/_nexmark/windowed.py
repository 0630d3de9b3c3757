"""Queries in windows without a join: Q5, Q11, Q12."""

from __future__ import annotations

import headrace as hr
from headrace.api.stream import Stream

from .site import Site


def q11(site: Site) -> Stream:
    """How many bids a person makes in each session."""
    sessions = site.bid.window(hr.session("10 seconds"), by="bidder").agg(bid_count="count(*)")
    return sessions.select("bidder, bid_count, window_start as starttime, window_end as endtime")


def q12(site: Site) -> Stream:
    """How many bids of a person are read in each ten seconds of the wall clock."""
    read = site.bid.window(hr.processing_time("10 seconds"), by="bidder").agg(bid_count="count(*)")
    return read.select("bidder, bid_count, window_start as starttime, window_end as endtime")
