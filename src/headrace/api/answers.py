"""The join of a stream with a table as of a time, as the user continues it."""

from __future__ import annotations

from headrace.api.stream import Stream
from headrace.core.columns.names import Names
from headrace.core.where import caller, says_where
from headrace.plan.building.as_of_joins import answered_early
from headrace.plan.joins.as_of import AsOfJoin


class Answers(Stream):
    """Records with the version of a table that was valid at a time of theirs. `emit` says when each is answered."""

    node: AsOfJoin

    @says_where
    def emit(self, *, early: bool, key: Names = ()) -> Stream:
        """With `early=True` answer each record at once, and correct it when the watermark has passed the time that it asks for.

        The early answer is the version that is known at the end of the record's epoch. If an earlier or later version turns out to be the
        valid one, the early answer is retracted and replaced; with `how="inner"` it may come only then. `key` identifies a record.
        """
        return Stream(self.namer, answered_early(self.node, early, key, caller()))
