"""A search in the index file of a segment: it reads only the entries it needs, however many the file has.

The search goes backward from the end in growing steps, because most readers are near it: the bytes read grow with the logarithm of the
distance from the end, not with the length of the segment.
"""

from __future__ import annotations

import numpy as np

from headrace.core.files.disk import File
from headrace.log.files import frame as frames
from headrace.log.files.frame import HEADER

_BLOCK = 64


class Lookup:
    """The entries of an index file for frames before position `end` of its segment.

    The search treats an unsound entry, one that is being written or is damaged, as the end of the file. The caller checks the result
    against the segment.
    """

    def __init__(self, file: File, end: int) -> None:
        self._file = file
        self._end = end
        self._count = file.size() // HEADER

    def place_of(self, offset: int) -> int:
        """The number of the first entry whose frame ends after `offset`; the number of entries if there is none."""
        above, step = self._count, 1
        while above > 0 and self._ends_behind(max(above - step, 0), offset):
            above, step = max(above - step, 0), 2 * step
        below = max(above - step, -1) if above else -1
        while above - below > 1:
            middle = (below + above) // 2
            if self._ends_behind(middle, offset):
                above = middle
            else:
                below = middle
        return above

    def run(self, first: int, least: int, last: int) -> np.ndarray:
        """The entries from the number `first` on: at least `least` of them, up to the first that begins at `last` or later."""
        found, block = b"", max(_BLOCK, least)
        while True:
            data = self._sound(self._file.read(first * HEADER + len(found), block * HEADER))
            entries = np.frombuffer(data, dtype=frames.INDEX)
            inside = entries["position"] < self._end
            # One more entry is read, too: it shows that none is missing before it.
            inside[1:] &= (entries["base"][:-1] < last) | (np.arange(1, len(entries)) < least - len(found) // HEADER)
            wanted = len(inside) if inside.all() else int(inside.argmin())
            found += data[: wanted * HEADER]
            if wanted < block or entries["base"][-1] >= last:
                return np.frombuffer(found, dtype=frames.INDEX)
            block *= 2

    def _ends_behind(self, number: int, offset: int) -> bool:
        entries = np.frombuffer(self._sound(self._file.read(number * HEADER, HEADER)), dtype=frames.INDEX)
        return not len(entries) or bool(entries["position"][0] >= self._end or entries["next"][0] > offset)

    def _sound(self, data: bytes) -> bytes:
        """The entries before the first that is not sound."""
        data = data[: len(data) // HEADER * HEADER]
        if frames.checked_index(data) is not None:
            return data
        starts = range(0, len(data), HEADER)
        return data[: next(start for start in starts if frames.checked_index(data[start : start + HEADER]) is None)]
