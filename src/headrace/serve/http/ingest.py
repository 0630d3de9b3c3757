"""Records that arrive over HTTP: JSON, lines of JSON and CloudEvents, checked as a whole and stored once."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from headrace.connectors.files.feed import CheckedRows, Feed
from headrace.connectors.files.lines import json_lines
from headrace.core.columns.schema import TIMESTAMP
from headrace.core.columns.values import column_of
from headrace.core.errors import SchemaError
from headrace.log import Log, Topic
from headrace.log.errors import RecordTooLarge, TimeAhead
from headrace.log.files.layout import BatchLayout
from headrace.schema.values import json_reader
from headrace.serve.http.bodies import parsed
from headrace.serve.http.problems import Problem

JSON, NDJSON = "application/json", "application/x-ndjson"
EVENT, EVENTS = "application/cloudevents+json", "application/cloudevents-batch+json"
_TOLD = 20
_IDENTIFYING = {"specversion", "id", "source", "type"}

Record = dict[str, Any]


@dataclass(frozen=True)
class Posted:
    """Records that are to be stored together, once for all posts with the same `identity`; None: each post stores them.

    `legible` ones are as the server shows records: their bytes are base64.
    """

    records: Sequence[Any]
    identity: str | None = None
    first_row: int = 0
    legible: bool = False
    revision: int = 1
    """The same for all posts with this identity, or else all but the first are refused."""


@dataclass
class StoredRecords:
    """The number of stored records, of those already stored, and the offsets after them."""

    stored: int = 0
    repeated: int = 0
    next: dict[int, int] | None = None


def posts_of(body: bytes, kind: str, headers: Mapping[str, str]) -> list[Posted]:
    """The records of a request, by its content type."""
    given = headers.get("idempotency-key")
    if given is not None and not 1 <= len(given) <= 200:
        raise Problem(400, "an idempotency key has 1 to 200 characters")
    identity = None if given is None else f"key/{given}"
    if kind == NDJSON:
        values = [value for _, value in json_lines(body.splitlines())]
        wrong = [(number, str(value)) for number, value in enumerate(values) if isinstance(value, ValueError)]
        if wrong:
            raise _unfit(wrong)
        return [_keyed(values, identity)]
    content = parsed(body)
    if kind == EVENT:
        return [_event(content, 0)]
    if kind == EVENTS:
        if not isinstance(content, list):
            raise Problem(422, "a batch of CloudEvents is an array")
        return [_event(event, number) for number, event in enumerate(content)]
    # In binary mode an event's attributes are headers, percent-encoded where they are more than plain ASCII.
    attributes = {name.removeprefix("ce-"): unquote(value) for name, value in headers.items() if name.startswith("ce-")}
    if attributes.keys() & _IDENTIFYING:
        return [_event({**attributes, "data": content}, 0)]
    return [_keyed(content if isinstance(content, list) else [content], identity)]


def _keyed(records: Sequence[Any], identity: str | None) -> Posted:
    """Records under an idempotency key, if there is one; their content is their revision."""
    if identity is None:
        return Posted(records)
    digest = hashlib.blake2b(json.dumps(records, sort_keys=True).encode(), digest_size=8).digest()
    return Posted(records, identity, revision=int.from_bytes(digest) >> 2)


def store(log: Log, topic: str, posts: Iterable[Posted]) -> StoredRecords:
    """Store records; if one of them does not fit, none is stored."""
    declared = log.topic(topic)
    if not declared.structured:
        raise Problem(409, f"topic {topic!r} holds bytes, no columns", hint="create it with a schema, or use headrace produce")
    tables = [(post, table_of(declared, post)) for post in posts]
    layout, now = BatchLayout(declared), log.clock.now()
    wrong = [(post.first_row + row, why) for post, table in tables for row, why in islice(_refused(layout, table, now), _TOLD)]
    if wrong:
        raise _unfit(wrong)
    stored = StoredRecords(next={})
    assert stored.next is not None
    for post, table in tables:
        if post.identity is None:
            with log.producer(acks="all") as producer:
                parts = producer.send_table(topic, table)
        else:
            writer = f"http/{topic}/{post.identity}"
            _refuse_other_records(log, topic, writer, post)
            parts = log.append_epoch(topic, table, writer=writer, epoch=post.revision, passing=True)
            if any(part.repeated for part in parts):
                # Two requests at once may both have found the key free.
                _refuse_other_records(log, topic, writer, post)
        for part in parts:
            count = part.next - part.base
            stored.repeated += count if part.repeated else 0
            stored.stored += 0 if part.repeated else count
            stored.next[part.partition] = max(part.next, stored.next.get(part.partition, 0))
    return stored


def _refuse_other_records(log: Log, topic: str, writer: str, post: Posted) -> None:
    if set(log.last_epochs(topic, writer, passing=True).values()) - {None, post.revision}:
        raise Problem(
            409,
            "other records were sent with this idempotency key before",
            hint="give new records a new key; a request that is repeated has the same records",
        )


def table_of(topic: Topic, post: Posted) -> pa.Table:
    """The records of a post as columns of a topic, with keys, times and tombstones where records have them."""
    read = CheckedRows(topic, Feed(), partial(json_reader, legible=post.legible))
    rows, wrong = _rows(read, post)
    if wrong:
        raise _unfit(wrong)
    columns = {field.name: _column([(row["value"] or {}).get(field.name) for row in rows], field, post) for field in topic.columns}
    arrays = [*columns.values()]
    fields = [*topic.columns]
    for name, kind, values in _extras(topic, rows):
        if any(value is not None for value in values):
            arrays.append(pa.array(values, kind))
            fields.append(pa.field(name, kind))
    return pa.Table.from_arrays(arrays, schema=pa.schema([field.with_nullable(True) for field in fields]))


def _refused(layout: BatchLayout, table: pa.Table, now: int, first: int = 0) -> Iterator[tuple[int, str]]:
    """The records that the log would refuse, too large or of a time ahead, each with the reason; found by halves."""
    try:
        layout.arrange(table, now)
    except (SchemaError, RecordTooLarge, TimeAhead) as error:
        if table.num_rows <= 1:
            yield first, error.fact
            return
        half = table.num_rows // 2
        yield from _refused(layout, table.slice(0, half), now, first)
        yield from _refused(layout, table.slice(half), now, first + half)


def _column(values: Sequence[Any], field: pa.Field, post: Posted) -> pa.Array:
    try:
        return column_of(values, field)
    except ValueError:
        # As above, in a column.
        for number, value in enumerate(values):
            try:
                column_of([value], field)
            except ValueError as error:
                raise _unfit([(post.first_row + number, str(error))]) from error
        raise


def _rows(read: Callable[[object], Record], post: Posted) -> tuple[list[Record], list[tuple[int, str]]]:
    rows, wrong = [], []
    for number, record in enumerate(post.records):
        try:
            row = read(record)
            if row["value"] is None:
                raise ValueError("a tombstone is not accepted over HTTP")
            # Half of a surrogate pair is text to Python and to JSON, but not in UTF-8.
            rows.append({**row, "key": None if row["key"] is None else str(row["key"]).encode()})
        except ValueError as error:
            wrong.append((post.first_row + number, str(error)))
    return rows, wrong


def _extras(topic: Topic, rows: Sequence[Record]) -> Iterable[tuple[str, pa.DataType, list[Any]]]:
    if not topic.key:
        yield "_key", pa.binary(), [row["key"] for row in rows]
    if not topic.time:
        yield "_time", TIMESTAMP, [row["time"] for row in rows]


def _event(event: Any, number: int) -> Posted:
    """A CloudEvent: its data is the record; its source and id tell whether it was already stored."""
    if not isinstance(event, dict) or not all(isinstance(event.get(name), str) and event[name] for name in ("id", "source", "type")):
        raise _unfit([(number, "a CloudEvent has an id, a source and a type")])
    if event.get("specversion") != "1.0":
        raise _unfit([(number, f"specversion {event.get('specversion')!r} is not 1.0")])
    data = _data(event, number)
    if isinstance(data, dict) and "_time" not in data and event.get("time") is not None:
        data = {**data, "_time": event["time"]}
    # Both may have any character: as JSON no two pairs are the same text.
    return Posted([data], f"cloudevent/{json.dumps([event['source'], event['id']])}", number)


def _data(event: Record, number: int) -> Any:
    """The data of an event, which may be in base64."""
    encoded = event.get("data_base64")
    if encoded is None:
        return event.get("data")
    if event.get("data") is not None:
        raise _unfit([(number, "a CloudEvent has data or data_base64, not both")])
    try:
        return json.loads(base64.b64decode(encoded, validate=True))
    except (TypeError, ValueError, RecursionError) as error:
        raise _unfit([(number, "data_base64 is not JSON in base64")]) from error


def _unfit(wrong: Sequence[tuple[int, str]]) -> Problem:
    number, reason = wrong[0]
    return Problem(
        422, f"record {number}: {reason}", hint="nothing was stored; correct the records and send all of them again",
        errors=[{"row": row, "reason": why} for row, why in wrong[:_TOLD]], count=len(wrong),
    )  # fmt: skip
