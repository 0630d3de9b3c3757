"""Recovery of the end of a partition from its files, after its last writer or the machine died."""

from __future__ import annotations

import logging
from pathlib import Path

from headrace.core.files.disk import Disk
from headrace.log.errors import CorruptLog
from headrace.log.files.durable_number import RESERVED, START, load_number
from headrace.log.files.head import PartitionState
from headrace.log.files.segment import Segment, segment_bases

_log = logging.getLogger(__name__)


def recover(disk: Disk, directory: Path, boot: int, stale: PartitionState | None, now: int) -> PartitionState:
    """Cut off a torn tail, make the rest durable, and return the end of the partition; called under its lock.

    `stale` is the last head if a sound one was found: from before a restart of the machine, or of a process that died while it closed a
    segment.
    """
    # A segment whose creator died may exist without being durable, and may be missing after the next crash.
    disk.sync_directory(directory)
    bases = segment_bases(disk.list(directory))
    active = _last_segment(disk, directory, bases, stale)
    same_boot = stale is not None and stale.boot == boot
    proved = stale.durable_position if stale is not None and stale.segment == active.base else 0
    end = active.recover(proved)
    _make_durable(disk, active, end, first=max(proved, active.first) if same_boot or stale is None else end)
    entries = active.scan_index(end)
    index = disk.open(active.index_path, create=True)
    index.truncate(0)
    index.write([entries.tobytes()], 0)
    index.close()
    start = max(bases[0], stale.start if stale else 0, load_number(disk, directory / START))
    reserved = load_number(disk, directory / RESERVED)
    # Readers may have seen offsets that a power cut lost: never assign them to other records.
    seen = max(stale.visible if stale else 0, 0 if same_boot else reserved)
    written = max(start, seen, int(entries["next"][-1]) if len(entries) else active.covers)
    return PartitionState(
        boot=boot, segment=active.base, position=end, entries=len(entries),
        written=written, durable=written, durable_position=end, visible=written, visible_position=end,
        reserved=reserved, start=start, cuts=(stale.cuts if stale else now) + 1, layout=(stale.layout if stale else now) + 1,
        syncing=0, ragged=0, rolling=0, deleted=stale.deleted if stale else 0,
    )  # fmt: skip


def _last_segment(disk: Disk, directory: Path, bases: list[int], stale: PartitionState | None) -> Segment:
    """The active segment; a head names one only after it was made durable."""
    if not bases or (stale is not None and stale.segment > bases[-1]):
        raise CorruptLog(
            f"{directory} has no segment {stale.segment if stale else 0}",
            why="its records are gone",
            hint="restore the directory from a copy, or give up the lost records with log.repair(topic, partition)",
        )
    return Segment(disk, directory, bases[-1])


def _make_durable(disk: Disk, active: Segment, end: int, first: int) -> None:
    """Cut the file at `end` and sync it. Writes from `first` on, since the machine started, are not trusted."""
    file = disk.open(active.path)
    try:
        if file.size() > end:
            _log.warning("%s: cut %d bytes of an append that a crash interrupted", active.path, file.size() - end)
            file.truncate(end)
        if first < end:
            # An earlier failed sync may have left lost pages that count as clean: only what is written again is certain to be synced.
            file.write([file.read(first, end - first)], first)
        file.sync()
    finally:
        file.close()
