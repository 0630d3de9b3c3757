"""The size of epochs: how many records one takes in, so that it takes about as long as it should.

An epoch that took too long makes the next one smaller, and one that took in all it was allowed to and was quick makes it larger again.
"""

from __future__ import annotations

from dataclasses import dataclass

# In the directory of the job: what was chosen, and why, where it is not what was asked for.
EPOCH_ROWS = "epoch-rows.json"
LEAST = 1_000
# An epoch with fewer records that takes long does not do so because of them.
_TELLING = 10_000
# Epochs between half of the target and the target are left as they are; one change at a time is bounded.
_SHORT, _LARGEST, _SMALLEST = 0.5, 2.0, 0.25


@dataclass
class EpochSize:
    """Chooses the most records of a stream that the next epoch takes in; never more than `most`.

    >>> size = EpochSize(target=10.0, most=1_000_000)
    >>> size.rows, size.after(taken=1_000_000, seconds=40.0), size.after(taken=250_000, seconds=4.0)
    (1000000, 250000, 500000)
    """

    target: float
    most: int
    rows: int = 0
    why: str = ""

    def __post_init__(self) -> None:
        self.rows = self.rows or self.most

    def after(self, taken: int, seconds: float) -> int:
        """Learn the duration of an epoch with this number of records; returns the bound of the next one."""
        full, before = taken >= self.rows, self.rows
        if taken >= _TELLING and seconds > self.target:
            self.rows = max(min(LEAST, self.most), int(min(taken, self.rows) * max(self.target / seconds, _SMALLEST)))
        elif full and seconds < _SHORT * self.target:
            self.rows = min(self.most, int(self.rows * min(self.target / max(seconds, 0.001), _LARGEST)))
        if self.rows != before:
            self.why = f"an epoch of {taken:,} records took {seconds:.1f} s, and {self.target:g} s are wanted"
        return self.rows
