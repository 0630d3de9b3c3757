"""Large packets in files: on one machine a task maps what another one wrote, and only the name of the file crosses Spark.

In Spark's shuffle a packet is compressed, copied some ten times between two processes, and decompressed. That takes longer than the work of
most operators. A file that was just written is in memory; it is removed when it is mapped, mostly before any of it gets to the disk.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import polars as pl
import pyarrow as pa
from pyarrow import ipc

from headrace.operators.state.blob import decode, encode

# The directory of the files in a checkpoint.
EXCHANGE = "exchange"
# In bytes: below this, making and removing a file costs more than it saves.
_LEAST = 1 << 18
# No Arrow stream begins like this.
_FILE = b"file "


@dataclass(frozen=True)
class PacketFiles:
    """The files of a job's large packets; a run begins without any."""

    root: Path
    least: int = _LEAST

    def clear(self) -> None:
        """Remove what a run that was cut off has left."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(parents=True)

    def put(self, frame: pl.DataFrame) -> bytes:
        """The records as bytes: their own, or the name of their file."""
        if frame.estimated_size() < self.least:
            return encode(frame)
        file = self.root / uuid4().hex
        frame.write_ipc(file, compression="uncompressed")
        return _FILE + os.fsencode(file)


def taken(blob: bytes) -> pl.DataFrame:
    """The records of a packet. A file can be taken once: a task that is repeated fails, and with it the epoch, which is then repeated."""
    if not blob.startswith(_FILE):
        return decode(blob)
    file = Path(os.fsdecode(blob.removeprefix(_FILE)))
    if not file.exists():
        raise OSError(f"packet {file.name} was taken by an earlier attempt of this task: the epoch must be repeated as a whole")
    try:
        with pa.memory_map(str(file)) as mapped:
            frame = pl.from_arrow(ipc.open_file(mapped).read_all())
    except pa.ArrowNotImplementedError:
        # Integers of 128 bits, as in sums, are known to polars alone. It copies.
        frame = pl.read_ipc(file)
    assert isinstance(frame, pl.DataFrame)
    file.unlink()
    return frame
