"""A number of a partition that must survive a failure of the machine: a small file of its own, replaced as a whole and checked when
read."""

from __future__ import annotations

from pathlib import Path

from headrace.core.files.disk import Disk
from headrace.log.errors import CorruptLog
from headrace.log.files.checksum import checksum

# The first readable offset, and the offset below which readers may have seen records that were not durable yet.
START, RESERVED = "start", "reserved"


def store_number(disk: Disk, path: Path, number: int) -> None:
    """Store a number; durable when this returns."""
    disk.replace(path, _packed(number))


def load_number(disk: Disk, path: Path) -> int:
    """The number stored at this path, 0 if there is none."""
    if not disk.exists(path):
        return 0
    data = disk.read(path)
    number = int.from_bytes(data[:8], "little")
    if data != _packed(number):
        raise CorruptLog(
            f"{path} has been changed or damaged",
            why="deleted records could come back, or offsets could be assigned twice",
            hint="restore the file from a copy, or run log.repair(topic, partition)",
        )
    return number


def _packed(number: int) -> bytes:
    data = number.to_bytes(8, "little")
    return data + checksum(data).to_bytes(4, "little")
