"""Groups numbered from 0 on, where the keys of a batch allow it: an index into an array is quicker than a hash table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
import pyarrow as pa

from headrace.operators.frames import row_hashes

# The most combinations of keys: a number for each record, and a number in any case.
_EACH, _ALWAYS = 4, 65_536
# Shorter runs than this on average are not worth it.
_RUN = 16
# The number of records that usually show whether some of all have the same key.
_FEW = 4_096
# The table that shows which hashes are alone has eight to sixteen places for each, within a bound on memory.
_ROOM, _MOST_BITS = 3, 24


@dataclass(frozen=True)
class NumberedGroups:
    """The groups of a batch's records: the group number of each record, and the number of records in each group."""

    numbers: np.ndarray
    sizes: np.ndarray

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def first(self) -> np.ndarray:
        """The first record of each group."""
        found = np.empty(len(self), np.int64)
        # Of several records, the one that is written last stays.
        found[self.numbers[::-1]] = np.arange(len(self.numbers) - 1, -1, -1)
        return found

    def added_up(self, values: np.ndarray, chosen: np.ndarray | None = None) -> np.ndarray:
        """The sum of each group's values, as floats; `chosen` says which records count, and there is one value for each of these."""
        return np.bincount(self._of(chosen), weights=values, minlength=len(self))

    def largest(self, values: np.ndarray) -> np.ndarray:
        """The largest of each group's values; there is one for each record."""
        found: np.ndarray = values[self.first]
        several = self.sizes[self.numbers] > 1
        np.maximum.at(found, self.numbers[several], values[several])
        return found

    def counted(self, chosen: np.ndarray | None) -> np.ndarray:
        """The number of chosen records in each group."""
        return self.sizes if chosen is None else np.bincount(self._of(chosen), minlength=len(self))

    def whole_sums(self, values: np.ndarray, chosen: np.ndarray | None = None) -> np.ndarray:
        """The sum of each group's values in 64 bits."""
        sums = np.zeros(len(self), np.int64)
        np.add.at(sums, self._of(chosen), values)
        return sums

    def _of(self, chosen: np.ndarray | None) -> np.ndarray:
        return self.numbers if chosen is None else self.numbers[chosen]


def groups_of(records: pl.DataFrame, by: Sequence[str]) -> NumberedGroups | None:
    """The groups by some columns; None where these have too many combinations, or a type that cannot be numbered."""
    if not records.height:
        return None
    several = doubtful(records, by) if _mostly_alone(records, by) else None
    if several is None:
        return _looked_up_groups(records, by)
    # A record that is alone needs no lookup.
    numbers, rest = np.cumsum(~several) - 1, np.flatnonzero(several)
    sizes = np.ones(records.height - len(rest), np.int64)
    if len(rest):
        others = _looked_up_groups(records[list(dict.fromkeys(by))][rest], by)
        if others is None:
            return None
        numbers[rest] = len(sizes) + others.numbers
        sizes = np.concatenate([sizes, others.sizes])
    return NumberedGroups(numbers, sizes)


def _mostly_alone(records: pl.DataFrame, by: Sequence[str]) -> bool:
    """Whether most records are the only ones of their key, as far as the first ones show."""
    hashes = _hashes(records.head(_FEW), by)
    # Among n times as many records each meets n times as many others.
    return hashes is not None and 4 * len(_repeated(hashes)) * records.height < len(hashes) ** 2


def _looked_up_groups(records: pl.DataFrame, by: Sequence[str]) -> NumberedGroups | None:
    room = max(_ALWAYS, _EACH * records.height)
    places, combinations = np.zeros(records.height, np.int64), 1
    for name in by:
        found = _numbered(records.get_column(name), room)
        if found is None:
            return None
        numbers, most = found
        combinations *= most
        if combinations > room:
            return None
        places = places * most + numbers
    counts = np.bincount(places, minlength=combinations)
    taken = np.flatnonzero(counts)
    lookup = np.empty(combinations, np.int64)
    lookup[taken] = np.arange(len(taken))
    return NumberedGroups(lookup[places], counts[taken])


def key_numbers(records: pl.DataFrame, by: Sequence[str]) -> np.ndarray:
    """A number for each record, the same for those of the same key."""
    places, most = np.zeros(records.height, np.int64), 1
    for name in by:
        series = records.get_column(name)
        if series.dtype.is_nested() or series.dtype.is_float():
            numbers, different = series.rank("dense").fill_null(0).cast(pl.Int64).to_numpy(), len(series) + 1
        else:
            numbers, different = _looked_up(series.to_arrow(compat_level=pl.CompatLevel.newest()))
        if most * different >= 2**62:
            _, places = np.unique(places, return_inverse=True)
            most = len(places)
        places, most = places * different + numbers, most * different
    return places


def firsts(numbers: np.ndarray) -> np.ndarray:
    """The place of one record of each number, in the order of the numbers."""
    if not len(numbers) or numbers.max() > _EACH * len(numbers):
        return np.unique(numbers, return_index=True)[1]
    found = np.full(numbers.max() + 1, -1, np.int64)
    found[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)
    return found[found >= 0]


def distinct(records: pl.DataFrame, by: Sequence[str]) -> bool:
    """Whether it is certain that no two records have the same key: quicker to find out than to merge those that have."""
    if records.height < 2:
        return True
    # Where two of few are equal there is no need to examine the others.
    for some in (records.head(_FEW), records) if records.height > _FEW else (records,):
        hashes = _hashes(some, by)
        if hashes is None or len(_repeated(hashes[_next_to_others(hashes)])):
            return False
    return True


def doubtful(records: pl.DataFrame, by: Sequence[str]) -> np.ndarray | None:
    """The records that may have the key of another one: all others are alone. None where nothing is known."""
    hashes = _hashes(records, by)
    if hashes is None:
        return None
    several = _next_to_others(hashes)
    some = np.flatnonzero(several)
    # A few are quickly distinguished from coincidences.
    if 4 * len(some) < len(hashes):
        several[some] = np.isin(hashes[some], _repeated(hashes[some]))
    return several


def _hashes(records: pl.DataFrame, by: Sequence[str]) -> np.ndarray | None:
    keys = list(dict.fromkeys(by))
    kinds = records.schema
    if any(kinds[name].is_float() or kinds[name].is_nested() for name in keys):
        return None
    return row_hashes(records, keys, seed=5)


def _next_to_others(hashes: np.ndarray) -> np.ndarray:
    """The hashes that share their first bits with another one: a few by coincidence, and all that occur twice."""
    bits = min(len(hashes).bit_length() + _ROOM, _MOST_BITS)
    places = (hashes >> np.uint64(64 - bits)).astype(np.int64)
    numbers = np.arange(len(hashes), dtype=np.int32)
    # Of several in one place, the number that is written last stays.
    last = np.empty(1 << bits, np.int32)
    last[places] = numbers
    shared = np.zeros(1 << bits, dtype=bool)
    shared[places[last[places] != numbers]] = True
    return np.asarray(shared[places])


def _repeated(hashes: np.ndarray) -> np.ndarray:
    """The hashes that occur several times, each once less than that."""
    ordered = np.sort(hashes)
    return np.asarray(ordered[1:][ordered[1:] == ordered[:-1]])


def _numbered(series: pl.Series, room: int) -> tuple[np.ndarray, int] | None:
    """A number for each value, the same for equal ones, and one more than the highest; null has one too."""
    kind = series.dtype
    if kind in (pl.String, pl.Binary):
        return _looked_up(series.to_arrow(compat_level=pl.CompatLevel.newest()))
    if not (kind.is_integer() or kind.is_temporal() or kind == pl.Boolean):
        return None
    whole = series.to_physical().cast(pl.Int64)
    low, high = whole.min(), whole.max()
    if low is None:
        return np.zeros(len(whole), np.int64), 1
    assert isinstance(low, int)
    assert isinstance(high, int)
    span = high - low + 1
    if span > room:
        return _in_runs(whole) or _looked_up(whole.to_arrow())
    shifted = whole - low
    return shifted.fill_null(span).to_numpy(), span + (whole.null_count() > 0)


def _in_runs(whole: pl.Series) -> tuple[np.ndarray, int] | None:
    """The same for values with long runs of equal ones, such as the panes of records that arrive roughly in order."""
    if whole.null_count():
        return None
    values = whole.to_numpy()
    begins = np.flatnonzero(values[1:] != values[:-1]) + 1
    if _RUN * len(begins) > len(values):
        return None
    begins = np.concatenate([[0], begins])
    different, numbers = np.unique(values[begins], return_inverse=True)
    return np.repeat(numbers, np.diff(begins, append=len(values))), len(different)


def _looked_up(values: pa.Array) -> tuple[np.ndarray, int]:
    encoded = values.dictionary_encode()
    different = len(encoded.dictionary)
    numbers = encoded.indices.fill_null(different) if values.null_count else encoded.indices
    return numbers.to_numpy().astype(np.int64), different + (values.null_count > 0)
