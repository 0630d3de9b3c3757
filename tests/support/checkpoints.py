"""Files of a checkpoint as Spark 4.3 writes them, with Hadoop's checksums, and what damage does to them."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

from headrace.engine.planning.epoch_plan import EpochPlan


def write(file: Path, text: str) -> None:
    """A file, and the checksum of each 512 bytes of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    file.write_bytes(data)
    sums = b"".join(zlib.crc32(data[at : at + 512]).to_bytes(4, "big") for at in range(0, len(data), 512))
    file.with_name(f".{file.name}.crc").write_bytes(b"crc\0\0\0\2\0" + sums)


def checkpoint(path: Path, offsets: range, commits: range, *, reads: int = 1) -> None:
    """The checkpoint of a job that has planned and committed some batches, each of ten records, and reads its source a number of times."""
    write(path / "metadata", json.dumps({"id": "f4ac190c-200e-403b-9077-9e0c08e06ed4"}))
    for batch in offsets:
        conf = {"batchWatermarkMs": 0, "batchTimestampMs": 1, "conf": {"spark.sql.shuffle.partitions": "2"}}
        offset = EpochPlan(batch + 1, {}, {"clicks": {0: 10 * (batch + 1)}}, {}).to_json()
        write(path / "offsets" / str(batch), "\n".join(["v1", json.dumps(conf), *[json.dumps(offset)] * reads]))
    for batch in commits:
        write(path / "commits" / str(batch), "\n".join(["v1", json.dumps({"nextBatchWatermarkMs": 0})]))


def empty(file: Path) -> None:
    """What a power cut leaves of a file that was renamed and never synced."""
    file.write_bytes(b"")


def cut(file: Path) -> None:
    """Half of a file."""
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flip(file: Path) -> None:
    """A file of the same length in which a digit is another one: only its checksum tells."""
    data = bytearray(file.read_bytes())
    place = max(index for index, byte in enumerate(data) if byte in b"0123456789")
    data[place] ^= 1
    file.write_bytes(bytes(data))


def lose(file: Path) -> None:
    """Neither the file nor its checksum, if it has one."""
    file.unlink()
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


DAMAGES = (empty, cut, flip, lose)
