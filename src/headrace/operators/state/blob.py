"""Frames as bytes and back: the form in which data crosses Spark's shuffle and rests in files of state."""

from __future__ import annotations

import io

import polars as pl


def encode(frame: pl.DataFrame) -> bytes:
    """A frame as an Arrow stream; compressed from a few kilobytes on, where it pays."""
    out = io.BytesIO()
    frame.write_ipc_stream(out, compression="lz4" if frame.estimated_size() > 4096 else "uncompressed")
    return out.getvalue()


def decode(blob: bytes) -> pl.DataFrame:
    """The frame in a blob."""
    return pl.read_ipc_stream(io.BytesIO(blob))
