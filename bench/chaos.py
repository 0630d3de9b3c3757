"""Kills writers of every sink (kill -9) at each step of an epoch's commit, again and again, while a reader looks on.

A row for each sink: how many writers were killed, at how many steps of an epoch, how often at each; how many rows were lost and there
twice in the end; how often the reader saw a part of an epoch, one twice or out of order, and how often it looked; the longest time from a
kill until readers saw the epoch, written by another writer; and how long all of it took. Then the servers themselves are killed,
restarted and stalled: a broker for 20 seconds, databases for 60.

usage: python bench/chaos.py [--quick] [--sink NAME]
"""

from __future__ import annotations

import logging

# Clients say of each server that it is away; that is meant.
logging.getLogger("headrace").addHandler(logging.NullHandler())

if __name__ == "__main__":
    # Every writer that is to be killed is a process that runs this file first: it loads nothing more by itself.
    from _chaos import main

    main(__doc__)
