"""The recent changes of a view, for readers at any epoch."""

import polars as pl

from headrace.serve.views.changes import DELETE, INSERT, OPERATION, RecentChanges, ViewChanges


def change(after, epoch, **operations):
    frame = pl.DataFrame({"key": list(operations), OPERATION: list(operations.values())}, schema={"key": pl.String, OPERATION: pl.String})
    return ViewChanges(after, epoch, frame)


def told(changes):
    return None if changes is None else dict(changes.frame.select("key", OPERATION).rows())


def test_a_reader_between_two_epochs_that_were_passed_together_gets_a_snapshot():
    recent = RecentChanges(["key"], 100)
    # Between them, a key may have come and gone: the reader would not be told that it is gone.
    recent.add(change(5, 8, a=INSERT))
    recent.add(change(8, 9, b=INSERT))
    assert recent.since(7) is None
    assert told(recent.since(5)) == {"a": INSERT, "b": INSERT}
    assert told(recent.since(8)) == {"b": INSERT}


def test_a_reader_between_epochs_without_a_change_gets_what_follows():
    recent = RecentChanges(["key"], 100)
    recent.add(change(5, 6))
    recent.add(change(6, 8))
    recent.add(change(8, 9, a=DELETE))
    assert told(recent.since(7)) == {"a": DELETE}
    assert recent.since(4) is None
