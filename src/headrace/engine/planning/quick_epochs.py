"""Quick epochs: the choice of the epochs that run in one task, by the number of their records.

A change between one task and several moves all state to other processes, which read it from files: it is made only for a reason that lasts.
"""

from __future__ import annotations

SEVERAL, LAST_OF_SEVERAL, ONE = "", "last", "one"
"""The tasks of an epoch: several; several, which then drop the state in their memory, since one is next; one for everything."""

# After this many small epochs in a row a job returns to one task. The number doubles each time one task turns out to be slow.
_CALM, _CALMEST = 3, 1_000
# In seconds: an epoch that takes longer has more work than its number of records tells, and several tasks share it.
_SLOW = 2.0


class QuickEpochs:
    """Chooses the tasks of each epoch; `most` is the largest number of records for one task, 0 where that cannot be.

    >>> epochs = QuickEpochs(most=100)
    >>> [epochs.tasks(rows) for rows in (10, 100, 101, 10, 10, 10, 10)]
    ['one', 'one', '', '', '', 'last', 'one']
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._last: str | None = None
        self._settled = False
        self._calm, self._needed = 0, _CALM

    def tasks(self, rows: int, took: float | None = None) -> str:
        """The tasks of the next epoch, which has `rows` records; `took`: the seconds of the previous one, where known."""
        slow = self._last == ONE and self._settled and took is not None and took > _SLOW
        if slow:
            self._needed = min(2 * self._needed, _CALMEST)
        # The first epoch in one task may read all state: its time tells nothing.
        self._settled = self._last == ONE
        self._last = self._chosen(rows, slow=slow)
        return self._last

    def _chosen(self, rows: int, *, slow: bool) -> str:
        if rows > self._most or not self._most or slow:
            self._calm = 0
            return SEVERAL
        if self._last != SEVERAL:
            return ONE
        # Half of it, so that a rate near the bound does not change the choice again and again.
        self._calm = self._calm + 1 if 2 * rows <= self._most else 0
        return LAST_OF_SEVERAL if self._calm >= self._needed else SEVERAL
