"""Topics over HTTP: descriptions, records by offset, time or key, sending records, groups, and redrive of dead letters."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import polars as pl
import pyarrow as pa
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from headrace.core.clock import to_datetime
from headrace.core.columns.schema import declared
from headrace.core.errors import HeadraceError
from headrace.log import Topic
from headrace.log.consumer import place_of
from headrace.log.errors import UnknownGroup, UnknownTopic
from headrace.log.files.cursor import Cursor, ReadLimits
from headrace.plan.topics import dead_topic
from headrace.schema.legible import as_json
from headrace.serve.arrivals import Asked, arrivals_of
from headrace.serve.http.bodies import object_of
from headrace.serve.http.ingest import Posted, posts_of, store
from headrace.serve.http.numbers import number
from headrace.serve.http.problems import Problem, problem_of
from headrace.serve.panes import COLUMNS, panes_of
from headrace.serve.views.hub import Hub

_PAGE, _MOST = 100, 1_000
# The number of records that are searched for those of a key before the answer says where to continue.
_LOOKED_AT = 200_000
# A window in milliseconds; in microseconds, this is as long as time is known.
_LONGEST = 2**63 // 1_000 - 1
_LETTERS = '{"letters": [{"partition": 0, "offset": 3, "record": {…}}]}, or {} for all'
_SEEK = '{"topic": "clicks", "to": "beginning"}'


class TopicRoutes:
    """Handlers of /api/v1/topics and /api/v1/groups."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def list(self, request: Request) -> Response:
        """Every topic, with its partitions, offsets and bytes."""
        return JSONResponse(await asyncio.to_thread(lambda: [self._described(topic) for topic in self._hub.log.topics()]))

    async def describe(self, request: Request) -> Response:
        """One topic: columns, key, time, settings, and the size of each partition."""
        topic = self._topic(request)
        return JSONResponse(await asyncio.to_thread(self._described, topic))

    async def records(self, request: Request) -> Response:
        """Records of one partition from an offset or a time on, or those with a key."""
        topic, asked = self._topic(request), request.query_params
        partition, limit = number(asked.get("partition", "0"), "partition"), number(asked.get("limit", str(_PAGE)), "limit")
        if partition >= topic.partitions:
            raise Problem(404, f"topic {topic.name!r} has {topic.partitions} partitions, from 0 on")
        start: int | datetime | str = "beginning"
        if "offset" in asked:
            start = number(asked["offset"], "offset")
        elif "time" in asked:
            start = _moment(asked["time"])
        wanted = min(max(limit, 1), _MOST)
        return Response(
            await asyncio.to_thread(self._read, topic, partition, start, wanted, asked.get("key")), media_type="application/json"
        )

    async def arrivals(self, request: Request) -> Response:
        """When the newest records of a topic happened, by its time or the column `time`, and when they arrived; counts by `window`."""
        topic, since = self._topic(request), _offsets(request)
        time = request.query_params.get("time") or topic.time or "_time"
        if time != "_time" and (time not in topic.columns.names or not pa.types.is_timestamp(topic.columns.field(time).type)):
            raise Problem(400, f"topic {topic.name!r} has no time {time!r}")
        window = number(request.query_params.get("window", "0"), "window")
        if window > _LONGEST:
            raise Problem(400, f"window={window} is too long: it is in milliseconds")
        return JSONResponse(await asyncio.to_thread(arrivals_of, self._hub.log, topic, Asked(since, time, window)))

    async def panes(self, request: Request) -> Response:
        """The panes of the windows in a view's topic: the window, early, on time or late, the epoch, when, and how many rows."""
        topic, since = self._topic(request), _offsets(request)
        if not set(COLUMNS) <= set(topic.columns.names):
            raise Problem(400, f"topic {topic.name!r} has no panes of windows", hint=f"its columns: {', '.join(topic.columns.names)}")
        return JSONResponse(await asyncio.to_thread(panes_of, self._hub.log, topic, since))

    async def produce(self, request: Request) -> Response:
        """Store records: a JSON object or array, lines of JSON, or CloudEvents. All of them, or none."""
        topic, hub = self._topic(request), self._hub
        for followed in hub.follower.views():
            if followed.view.topic == topic.name:
                raise Problem(409, f"topic {topic.name!r} has the view of job {followed.view.app!r}, which alone writes it")
        if hub.ingesting >= hub.limits.ingests:
            raise Problem(429, f"{hub.ingesting} requests write already", headers={"Retry-After": "1"})
        hub.ingesting += 1
        try:
            body = await request.body()
            kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
            stored = await asyncio.to_thread(lambda: store(hub.log, topic.name, posts_of(body, kind, request.headers)))
        finally:
            hub.ingesting -= 1
        answer = {"topic": topic.name, "stored": stored.stored, "repeated": stored.repeated, "next_offsets": stored.next}
        return JSONResponse(answer, 201 if stored.stored else 200)

    async def redrive(self, request: Request) -> Response:
        """Send dead letters of a stream again, as they are or corrected; each once, however often it is requested."""
        topic = self._topic(request)
        asked = object_of(await request.body() or b"{}", _LETTERS)
        return JSONResponse(await asyncio.to_thread(self._redrive, topic, _chosen(asked.get("letters"))))

    async def groups(self, request: Request) -> Response:
        """Every consumer group, with its members and its lag."""
        log = self._hub.log
        told = await asyncio.to_thread(lambda: [log.describe_group(name) for name in log.group_names()])
        return Response(json.dumps(told, default=str), media_type="application/json")

    async def seek(self, request: Request) -> Response:
        """Let a group without members continue from another place: topic, and offset, time, beginning or end."""
        asked = object_of(await request.body(), _SEEK)
        topic, partition = asked.get("topic"), asked.get("partition")
        place: Any = asked.get("to")
        if not isinstance(topic, str) or not (isinstance(place, str) or _whole(place)) or not (partition is None or _whole(partition)):
            raise Problem(400, "the body names topic and to", hint=_SEEK)
        if isinstance(place, str) and place not in ("beginning", "end"):
            place = _moment(place)
        try:
            moved = await asyncio.to_thread(self._hub.log.seek_group, request.path_params["name"], topic, place, partition)
        except (UnknownGroup, UnknownTopic) as error:
            raise problem_of(error, 404) from error
        except HeadraceError as error:
            raise problem_of(error, 409) from error
        return JSONResponse([{"topic": name, "partition": index, "offset": offset} for (name, index), offset in moved.items()])

    def _topic(self, request: Request) -> Topic:
        name = request.path_params["name"]
        try:
            topic = self._hub.log.topic(name)
        except HeadraceError as error:
            raise Problem(404, f"there is no topic {name!r}") from error
        if topic.internal:
            raise Problem(404, f"there is no topic {name!r}")
        return topic

    def _described(self, topic: Topic) -> dict[str, Any]:
        told = self._hub.log.describe(topic.name)
        for partition in told["partitions"]:
            moment = partition["max_event_time"]
            partition["max_event_time"] = None if moment is None else to_datetime(moment).isoformat()
        return {**told, "columns": declared(topic.columns)}

    def _read(self, topic: Topic, partition: int, start: Any, limit: int, key: str | None) -> bytes:
        log = self._hub.log
        place = log.partition(topic, partition)
        try:
            offset = place_of(place, start, log.transactions)
            cursor = Cursor(place, offset, outcomes=log.transactions)
            names = tuple(dict.fromkeys((*place.layout.visible_columns(), "_key", "_tombstone")))
            found, looked = list[pa.RecordBatch](), 0
            while sum(batch.num_rows for batch in found) < limit and looked < _LOOKED_AT:
                room = limit - sum(batch.num_rows for batch in found) if key is None else 10_000
                batches = cursor.read(ReadLimits(rows=room), names)
                if not batches:
                    break
                looked += sum(batch.num_rows for batch in batches)
                found += batches if key is None else [kept for batch in batches if (kept := _with_key(batch, key)).num_rows]
        except HeadraceError as error:
            raise problem_of(error, 404) from error
        table = pa.Table.from_batches(found, place.layout.schema(names)).slice(0, limit)
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        shown = frame.with_columns(pl.Series("_key", [_legible(key) for key in frame["_key"]], dtype=pl.String))
        rows = ",".join(as_json(shown).to_list()) if shown.height else ""
        return f'{{"records":[{rows}],"next":{cursor.offset}}}'.encode()

    def _redrive(self, dead: Topic, mended: Mapping[tuple[int, int], Any] | None) -> dict[str, Any]:
        log = self._hub.log
        stream = dead.name.removesuffix(".dead")
        if dead_topic(stream) != dead.name:
            raise Problem(409, f"{dead.name!r} is not a topic of dead letters", hint="dead letters of a stream are in <stream>.dead")
        try:
            log.topic(stream)
        except UnknownTopic as error:
            raise Problem(409, f"{stream!r} is not a topic of this log", hint="send the records to their own system") from error
        redriven, repeated, failed = 0, 0, list[dict[str, Any]]()
        missing = set(mended or ())
        for row in log.read(dead.name).to_pylist():
            place = (row["_partition"], row["_offset"])
            if mended is not None and place not in mended:
                continue
            missing.discard(place)
            try:
                given = None if mended is None else mended[place]
                record = json.loads(row["record"] or "null") if given is None else given
                stored = store(log, stream, [Posted([record], f"redrive/{dead.id}/{place[0]}/{place[1]}", legible=True)])
            except (ValueError, Problem, HeadraceError) as error:
                reason = error.fact if isinstance(error, Problem | HeadraceError) else str(error)
                failed.append({"partition": place[0], "offset": place[1], "reason": reason})
                continue
            redriven += stored.stored
            repeated += stored.repeated
        failed += [{"partition": partition, "offset": offset, "reason": "there is no such letter"} for partition, offset in sorted(missing)]
        return {"redriven": redriven, "repeated": repeated, "failed": failed}


def _chosen(letters: Any) -> dict[tuple[int, int], Any] | None:
    """The letters that a request names by partition and offset, each with its corrected record; None for all."""
    if letters is None:
        return None
    if not isinstance(letters, list) or not all(
        isinstance(letter, dict) and _whole(letter.get("partition")) and _whole(letter.get("offset")) for letter in letters
    ):
        raise Problem(400, "letters is an array, and each has a partition and an offset", hint=_LETTERS)
    return {(letter["partition"], letter["offset"]): letter.get("record") for letter in letters}


def _offsets(request: Request) -> dict[int, int]:
    """The offsets that a page has already seen, by partition."""
    asked = request.query_params.get("since", "{}")
    try:
        found = {int(partition): offset for partition, offset in json.loads(asked).items()}
        if all(map(_whole, found.values())):
            return found
    except (ValueError, AttributeError, RecursionError):
        pass
    raise Problem(400, f"since={asked[:80]!r} is not an object of offsets", hint='{"0": 17}')


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62


def _with_key(batch: pa.RecordBatch, key: str) -> pa.RecordBatch:
    column = batch.column("_key")
    return batch.filter(pa.compute.equal(column, pa.scalar(key.encode(), column.type)).fill_null(False))


def _legible(key: bytes | None) -> str | None:
    """A key as text; one that is no text as base64, as binary columns are."""
    if key is None:
        return None
    try:
        return key.decode()
    except UnicodeDecodeError:
        return base64.b64encode(key).decode()


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise Problem(400, f"{text!r} is not a time", hint="2026-01-01T12:00:00Z") from error
    if moment.tzinfo is None:
        raise Problem(400, f"time {text!r} has no zone", hint="2026-01-01T12:00:00Z")
    return moment
