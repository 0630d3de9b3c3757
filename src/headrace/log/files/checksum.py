"""CRC32C, the one checksum of the log."""

from __future__ import annotations

import google_crc32c
import pyarrow as pa


def checksum(data: bytes | pa.Buffer) -> int:
    """The CRC32C of some bytes.

    >>> hex(checksum(b"123456789"))
    '0xe3069283'
    """
    return int(google_crc32c.value(data))
