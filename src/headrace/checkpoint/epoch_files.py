"""The files of a job's progress, in Spark's form: an offset file and a commit file for each epoch, and the id of the query.

Spark does not read past a damaged one. Next to each there may be a checksum of Hadoop's; our own loop puts one of the plan into the file.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from headrace.checkpoint.journal import (
    CHECKSUM,
    COMMITS,
    OFFSETS,
    QUERY,
    batches,
    checksum_of,
    entry,
    give_id,
    plan_checksum,
    remove_entry,
)
from headrace.engine.planning.epoch_plan import EpochPlan

_CHUNK = 512
_HEADER = b"crc\0" + _CHUNK.to_bytes(4, "big")


@dataclass(frozen=True)
class Checkpoint:
    """The checkpoint of one job, by the numbers of Spark's batches."""

    path: Path

    @property
    def present(self) -> bool:
        return (self.path / OFFSETS).is_dir()

    @cached_property
    def offsets(self) -> dict[int, EpochPlan | None]:
        """The plan of each batch, by its number; None where the file is damaged."""
        return {int(file.name): _offset(file) for file in _numbered(self.path, OFFSETS)}

    @cached_property
    def commits(self) -> dict[int, bool]:
        """The finished batches, by their numbers; False where the file is damaged."""
        return {int(file.name): _committed(file) for file in _numbered(self.path, COMMITS)}

    @property
    def last(self) -> int:
        """The last batch with any file; -1 if there is none."""
        return max([*self.offsets, *self.commits], default=-1)

    @property
    def named(self) -> bool:
        """Whether the query has its id, or has done nothing yet and will get one."""
        file = self.path / QUERY
        if not file.exists():
            return not self.offsets
        found = _whole(file)
        return found is not None and isinstance(_parsed(found), dict)

    def name(self) -> None:
        """Give the query another id."""
        remove_entry(self.path / QUERY)
        give_id(self.path)

    def forget_offset(self, batch: int) -> None:
        remove_entry(entry(self.path, OFFSETS, batch))

    def forget_commit(self, batch: int) -> None:
        remove_entry(entry(self.path, COMMITS, batch))


def stored_plan(file: Path) -> EpochPlan:
    """The plan in an offset file that is whole."""
    return EpochPlan.from_json(json.loads(file.read_text(encoding="utf-8").splitlines()[-1]))


def _offset(file: Path) -> EpochPlan | None:
    lines = (_whole(file) or "").splitlines()
    if len(lines) < 3 or not lines[0].startswith("v") or not isinstance(_parsed(lines[1]), dict):
        return None
    # A job that lets Spark evaluate a step may read its source several times, and has the same offset for each.
    found = [_parsed(line) for line in lines[2:]]
    whole = isinstance(found[0], dict) and "epoch" in found[0] and all(one == found[0] for one in found)
    known = _parsed(lines[1]).get("conf", {}).get(CHECKSUM)
    return EpochPlan.from_json(found[0]) if whole and known in (None, plan_checksum(lines[2])) else None


def _committed(file: Path) -> bool:
    lines = (_whole(file) or "").splitlines()
    return len(lines) == 2 and lines[0].startswith("v") and isinstance(_parsed(lines[1]), dict)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _whole(file: Path) -> str | None:
    """The text of a file; None if it does not exist or does not match its checksums."""
    sums = checksum_of(file)
    try:
        data = file.read_bytes()
        if sums.is_file() and sums.read_bytes() != _sums(data):
            return None
        return data.decode()
    except (FileNotFoundError, UnicodeDecodeError):
        return None


def _sums(data: bytes) -> bytes:
    """Hadoop's checksum file: a header, and a checksum for each 512 bytes."""
    pieces = [data[at : at + _CHUNK] for at in range(0, len(data), _CHUNK)]
    return _HEADER + b"".join(zlib.crc32(piece).to_bytes(4, "big") for piece in pieces)


def _numbered(checkpoint: Path, kind: str) -> list[Path]:
    return [entry(checkpoint, kind, batch) for batch in sorted(batches(checkpoint, kind))]
