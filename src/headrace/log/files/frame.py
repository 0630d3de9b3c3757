"""One appended record batch on disk: a header of sixteen words, then an Arrow record batch message.

The header is stored a second time, byte for byte, in the segment's index, so that the index is checked like the data.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headrace.log.files.checksum import checksum

MAGIC = 0x31465248  # "HRF1"
HEADER = 128
ALIGNMENT = 64
# A disk writes whole sectors: in a new file, a sector that a power cut left unwritten reads as zeros.
SECTOR = 512
NO_TIME, ANY_TIME = -(2**63), 2**63 - 1

# The optional columns of the body, in addition to the topic's own.
KEYS, TIMES, HEADERS, TOMBSTONES, OFFSETS = 1, 2, 4, 8, 16
# More frames of the same append follow: recovery keeps all of them or none.
MORE = 256
TRANSACTIONAL = 512

CODECS: tuple[str | None, ...] = (None, "lz4", "zstd")

_LAYOUT = struct.Struct("<IHBxqqIIqqqqQqqqqqIIxxxx")
_CHECKED = HEADER - 4

INDEX = np.dtype(
    {
        "names": ["base", "next", "count", "length", "position", "min_time", "max_time", "appended_at",
                  "writer", "generation", "sequence", "transaction", "raw_length", "flags"],
        "formats": ["<i8", "<i8", "<u4", "<u4", "<i8", "<i8", "<i8", "<i8", "<u8", "<i8", "<i8", "<i8", "<i8", "<u2"],
        "offsets": [8, 16, 24, 28, 32, 40, 48, 56, 64, 72, 80, 88, 104, 4],
        "itemsize": HEADER,
    }
)  # fmt: skip


class Frame(NamedTuple):
    """The header of one appended record batch. Offsets run from `base` to `next`, exclusive; `next` - `base` may exceed `count`.

    `durable` is the position up to which the segment was durable when this frame was written, `blank` the number of sectors of the body
    with zeros only: both distinguish a damaged batch from one that was never written completely.
    """

    base: int
    next: int
    count: int  # type: ignore[assignment] # of records; a tuple's own count is not used
    length: int
    position: int
    min_time: int
    max_time: int
    appended_at: int
    writer: int
    generation: int
    sequence: int
    transaction: int
    durable: int
    raw_length: int
    flags: int
    codec: int
    crc: int
    blank: int = 0

    @property
    def end(self) -> int:
        """The position of the following frame in the file."""
        return self.position + HEADER + padded(self.length)

    def pack(self) -> bytes:
        data = _LAYOUT.pack(
            MAGIC, self.flags, self.codec, self.base, self.next, self.count, self.length, self.position,
            self.min_time, self.max_time, self.appended_at, self.writer, self.generation, self.sequence,
            self.transaction, self.durable, self.raw_length, self.crc, self.blank,
        )  # fmt: skip
        return data[:_CHECKED] + checksum(data[:_CHECKED]).to_bytes(4, "little")


def gap(base: int, until: int, flags: int = 0) -> tuple[Frame, pa.Buffer]:
    """A frame that records that there is no record from `base` up to `until`: a segment that ends earlier has lost its end."""
    frame = Frame(
        base=base, next=until, count=0, length=0, position=0, min_time=NO_TIME, max_time=NO_TIME, appended_at=0, writer=0,
        generation=0, sequence=0, transaction=0, durable=0, raw_length=0, flags=flags, codec=0, crc=checksum(b""),
    )  # fmt: skip
    return frame, pa.py_buffer(b"")


def padded(length: int) -> int:
    return -(-length // ALIGNMENT) * ALIGNMENT


def unpack(data: bytes, position: int) -> Frame | None:
    """The header in `data`, or None if these are not the bytes of a header for `position`."""
    if len(data) < HEADER or checksum(data[:_CHECKED]) != int.from_bytes(data[_CHECKED:HEADER], "little"):
        return None
    (magic, flags, codec, base, next_, count, length, place, min_time, max_time, appended_at, writer, generation,
     sequence, transaction, durable, raw_length, crc, blank) = _LAYOUT.unpack_from(data)  # fmt: skip
    if magic != MAGIC or place != position:
        return None
    return Frame(base, next_, count, length, place, min_time, max_time, appended_at, writer, generation, sequence,
                 transaction, durable, raw_length, flags, codec, crc, blank)  # fmt: skip


def encode(batch: pa.RecordBatch, codec: int) -> tuple[pa.Buffer, int]:
    """The body of a frame, and its length before compression."""
    body = batch.serialize()
    name = CODECS[codec]
    if name is None:
        return body, body.size
    compressed = pa.compress(body, codec=name)
    # As memory, this buffer has its allocated length; a slice has the length that was filled.
    return compressed.slice(0, compressed.size), body.size


def decode(frame: Frame, body: pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
    """The records of a frame; without a codec they share the memory of `body`."""
    name = CODECS[frame.codec]
    if name:
        body = pa.decompress(body, decompressed_size=frame.raw_length, codec=name)
    return pa.ipc.read_record_batch(body, schema)


def sound(frame: Frame, body: pa.Buffer) -> bool:
    """Whether the body is unchanged since it was written."""
    return body.size == frame.length and checksum(body) == frame.crc


def blank_sectors(body: pa.Buffer, position: int) -> int:
    """The number of sectors inside the body of a frame at `position` that contain only zeros; the last may be shorter."""
    data = memoryview(body)[-(position + HEADER) % SECTOR :]
    whole = len(data) // SECTOR
    blank = int(whole * SECTOR < len(data) and not data[whole * SECTOR :].tobytes().strip(b"\0"))
    if whole < 16:
        return blank + sum(not data[start : start + SECTOR].tobytes().strip(b"\0") for start in range(0, whole * SECTOR, SECTOR))
    # One word of each sector decides for nearly all.
    sectors = np.frombuffer(data, dtype=np.uint64, count=whole * SECTOR // 8).reshape(whole, SECTOR // 8)
    doubtful = sectors[sectors[:, 0] == 0]
    return blank + len(doubtful) - int(np.count_nonzero(doubtful.any(axis=1)))


def chained(entries: np.ndarray, first: int) -> bool:
    """Whether each frame of an index begins at the end of the previous one, the first one at `first`."""
    ends = entries["position"] + HEADER + -(-entries["length"].astype(np.int64) // ALIGNMENT) * ALIGNMENT
    begins = np.concatenate([[first], ends[:-1]]) if len(entries) else ends
    return bool(np.array_equal(entries["position"], begins) and (entries["base"][1:] >= entries["next"][:-1]).all())


def checked_index(data: bytes | memoryview | pa.Buffer) -> np.ndarray | None:
    """The headers of an index file as an array of `INDEX`, or None if any byte of it changed."""
    view = memoryview(data)
    count = len(view) // HEADER
    if count * HEADER != len(view):
        return None
    return np.frombuffer(view, dtype=INDEX) if _all_sound(view, count) else None


def _all_sound(view: memoryview, count: int) -> bool:
    # From a few hundred rows on, one table lookup for each column is quicker than one call for each row.
    if count < 512:
        data = view.tobytes()
        ends = range(HEADER, len(data) + 1, HEADER)
        return all(checksum(data[end - HEADER : end - 4]) == int.from_bytes(data[end - 4 : end], "little") for end in ends)
    raw = np.frombuffer(view, dtype=np.uint8).reshape(count, HEADER)
    stored = raw[:, _CHECKED:].copy().view("<u4").ravel()
    return np.array_equal(_row_crcs(raw[:, :_CHECKED]), stored)


def _row_crcs(rows: np.ndarray) -> np.ndarray:
    """CRC32C of every row at once."""
    crcs = np.full(len(rows), 0xFFFFFFFF, dtype=np.uint32)
    for column in np.ascontiguousarray(rows.T):
        crcs = _TABLE[(crcs ^ column) & 0xFF] ^ (crcs >> np.uint32(8))
    return crcs ^ np.uint32(0xFFFFFFFF)


def _crc_table() -> np.ndarray:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82F63B78), table >> 1).astype(np.uint32)
    return table


_TABLE = _crc_table()
