"""Rows in the formats that a client accepts: JSON, lines of JSON, CSV, an Arrow stream and Parquet."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from headrace.core.nearest import choices
from headrace.schema.legible import as_json, moment_text
from headrace.serve.http.problems import Problem

JSON, NDJSON, CSV, ARROW = "application/json", "application/x-ndjson", "text/csv", "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"
EVENTS = "text/event-stream"
_NAMES = {"json": JSON, "ndjson": NDJSON, "csv": CSV, "arrow": ARROW, "parquet": PARQUET}
_QUALITY = re.compile(r"[01](\.\d{0,3})?")


@dataclass(frozen=True)
class ResponseFormat:
    """A format by its media type."""

    media_type: str

    def rows(self, frame: pl.DataFrame) -> bytes:
        """Rows as the body of an answer."""
        if self.media_type == ARROW:
            out = io.BytesIO()
            table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
            with pa.ipc.new_stream(out, table.schema) as writer:
                writer.write_table(table)
            return out.getvalue()
        if self.media_type == PARQUET:
            out = io.BytesIO()
            frame.write_parquet(out)
            return out.getvalue()
        if self.media_type == CSV:
            return frame.select(_cell(frame, name) for name in frame.columns).write_csv().encode()
        lines = as_json(frame).to_list() if frame.height else []
        if self.media_type == NDJSON:
            return "".join(f"{line}\n" for line in lines).encode()
        return f"[{','.join(lines)}]".encode()


def accepted(accept: str | None, name: str | None = None) -> ResponseFormat:
    """The format that a request asks for, by `?format=` or by its Accept header."""
    if name is not None:
        if name not in _NAMES:
            raise Problem(406, f"format={name!r} is not known", hint=choices(name, _NAMES, "formats"))
        return ResponseFormat(_NAMES[name])
    if accept is None or accept == "*/*":
        return ResponseFormat(JSON)
    ranges = _ranges(accept or "*/*")
    best = max(_NAMES.values(), key=lambda media_type: _preference(media_type, ranges))
    if _preference(best, ranges)[0] <= 0:
        raise Problem(406, f"none of {accept!r} can be given", hint=f"one of {', '.join(_NAMES.values())}")
    return ResponseFormat(best)


def asks_for_events(accept: str | None) -> bool:
    """Whether a request asks for server-sent events: by their name, as a browser does."""
    return any(kind == EVENTS and quality > 0 for kind, quality in _ranges(accept or ""))


def _ranges(accept: str) -> list[tuple[str, float]]:
    """The media ranges of an Accept header, each with its quality."""
    found = []
    for part in accept.lower().split(","):
        kind, *parameters = (text.strip() for text in part.split(";"))
        given = next((text[2:] for text in parameters if text.startswith("q=")), "1")
        found.append((kind, float(given) if _QUALITY.fullmatch(given) else 1.0))
    return found


def _preference(media_type: str, ranges: Sequence[tuple[str, float]]) -> tuple[float, int]:
    """The quality of the most specific range that has a media type; among equals the first range counts more."""
    for pattern in (media_type, f"{media_type.partition('/')[0]}/*", "*/*"):
        for place, (kind, quality) in enumerate(ranges):
            if kind == pattern:
                return quality, -place
    return 0.0, 0


def _cell(frame: pl.DataFrame, name: str) -> pl.Series:
    """A column as a cell of CSV shows it: nested values as JSON, bytes as base64, moments in ISO 8601."""
    column = frame.get_column(name)
    if column.dtype.is_nested():
        texts = as_json(frame.select(pl.col(name).alias("cell"))) if frame.height else pl.Series([], dtype=pl.String)
        return texts.str.slice(len('{"cell":')).str.head(-1).replace("null", None).alias(name)
    if isinstance(column.dtype, pl.Datetime | pl.Date):
        return frame.select(moment_text(pl.col(name), column.dtype, "%.6f")).to_series().alias(name)
    return column.bin.encode("base64") if column.dtype == pl.Binary else column
