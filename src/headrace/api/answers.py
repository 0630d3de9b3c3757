"""The join of a stream with a table as of a time, as the user continues it."""

from __future__ import annotations

from dataclasses import replace

from headrace.api.stream import Stream
from headrace.core.columns.names import Names, listed
from headrace.core.errors import PlanError
from headrace.core.where import says_where
from headrace.plan.joins.as_of import AsOfJoin
from headrace.plan.nodes import column


class Answers(Stream):
    """Records with the version of a table that was valid at a time of theirs. `emit` says when each is answered."""

    node: AsOfJoin

    @says_where
    def emit(self, *, early: bool, key: Names = ()) -> Stream:
        """With `early=True` answer each record at once, and correct it when the watermark has passed the time that it asks for.

        The early answer is the version that is known at the end of the record's epoch. If an earlier or later version turns out to be the
        valid one, the early answer is retracted and replaced; with `how="inner"` it may come only then. `key` identifies a record.
        """
        if early is not True:
            raise PlanError(
                f"emit(early={early!r}) of {self.name!r}",
                why="a record is answered at once and once more when the watermark proves the answer, not in between",
                hint='emit(early=True, key="id"), or leave emit out to get the proved answer only',
            )
        if not listed(key):
            raise PlanError(
                f"emit(early=True) of {self.name!r} has no key",
                why="which record an answer corrects would not be known",
                hint='name the columns that identify a record: emit(early=True, key="id")',
            )
        for name in listed(key):
            column(self.node.sides.left, name, "emit by")
        return Stream(self.namer, replace(self.node, early=listed(key)))
