"""The app of a scenario: streams, and views as lists of steps with the names of the Python methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from headrace.api import windows
from headrace.api.aggregating import Grouped, Windowed
from headrace.api.declaration import Declaration
from headrace.api.stream import Stream
from headrace.app import App
from headrace.core.errors import PlanError, SchemaError, SettingsError
from headrace.plan.topics import dead_topic, late_topic
from headrace.plan.watermarks import DEFAULT_AHEAD, Watermark
from headrace.plan.windows.kinds import Window
from headrace.testing.scenarios.content import Content
from headrace.testing.scenarios.joining import join, join_within

Made = Stream | Windowed | Grouped
_MATCH = ("by", "pattern", "define", "within", "measures", "where", "after", "rows", "skip")
_STREAM = ("schema", "key", "time", "watermark", "late", "partitions")


def partitions(streams: Content) -> dict[str, int]:
    """The number of partitions of each stream."""
    counts = {}
    for name, content in streams.items():
        found = content.fields(_STREAM, needed=["schema"])
        counts[name] = found["partitions"].number() if "partitions" in found else 1
    return counts


def declare(app: Declaration, streams: Content, steps: Content | None, views: Content) -> None:
    """Declare the app of a scenario's file."""
    known: dict[str, Made] = {}
    for name, content in streams.items():
        with _at(content):
            known[name] = stream = _stream(app, name, content)
            known[dead_topic(name)] = stream.dead()
            if stream.node.watermarked and "late" not in content.fields(_STREAM):
                known[late_topic(name)] = stream.late()
    for name, content in steps.items() if steps else ():
        if name in known:
            raise SchemaError(f"{content.place}: there is already a {name!r}", hint="give each stream and step its own name")
        known[name] = _pipeline(content, known)
    for name, content in views.items():
        made = _pipeline(content, known)
        if not isinstance(made, Stream):
            raise SchemaError(f"{content.place} ends with windows or groups", hint="say what is computed in them: agg")
        with _at(content):
            app.view(name, made)


def _stream(app: Declaration, name: str, content: Content) -> Stream:
    found = content.fields(_STREAM, needed=["schema"])
    counts: dict[str, Any] = {"partitions": found["partitions"].number()} if isinstance(app, App) and "partitions" in found else {}
    return app.stream(
        name,
        found["schema"].text(),
        key=found["key"].texts() if "key" in found else (),
        time=found["time"].text() if "time" in found else None,
        watermark=_watermark(found["watermark"]) if "watermark" in found else None,
        late=found["late"].text() if "late" in found else "side",
        **counts,
    )


def _watermark(content: Content) -> Watermark:
    if content.value == "perfect":
        return windows.perfect()
    found = content.fields(("bounded", "perfect", "loss_budget", "max", "idle", "max_ahead"))
    idle = found["idle"].text() if "idle" in found else None
    ahead = found["max_ahead"].text() if "max_ahead" in found else DEFAULT_AHEAD
    if "bounded" in found:
        return windows.bounded(found["bounded"].text(), idle=idle, max_ahead=ahead)
    if "perfect" in found:
        return windows.perfect(idle=idle, max_ahead=ahead)
    if "loss_budget" in found and "max" in found:
        return windows.loss_budget(found["loss_budget"].share(), max=found["max"].text(), idle=idle, max_ahead=ahead)
    raise SchemaError(f"{content.place} does not say which it is", hint="bounded: 10 seconds, or perfect, or loss_budget and max")


def _pipeline(content: Content, known: Mapping[str, Made]) -> Made:
    """A name, or a list that begins with one and continues with one method in each line."""
    if isinstance(content.value, str):
        return _known(content, known)
    first, *rest = content.parts()
    made = _known(first, known)
    for step in rest:
        method, arguments = step.only(_METHODS)
        with _at(arguments):
            made = _METHODS[method](made, arguments, known)
    return made


def _known(content: Content, known: Mapping[str, Made]) -> Made:
    name = content.text()
    if name not in known:
        raise SchemaError(f"{content.place}: there is no stream or step {name!r}", hint=f"there are: {', '.join(known)}")
    return known[name]


@contextmanager
def _at(content: Content) -> Iterator[None]:
    """Let an error of the app name the place in the file, not a line of this module."""
    try:
        yield
    except PlanError as error:
        raise PlanError(error.fact, why=error.why, hint=error.hint, where=content.place) from error
    except SettingsError as error:
        raise SchemaError(f"{content.place}: {error.fact}", why=error.why, hint=error.hint) from error


def _on_stream(make: Callable[[Stream, Content, Mapping[str, Made]], Made]) -> Callable[[Made, Content, Mapping[str, Made]], Made]:
    def checked(made: Made, arguments: Content, known: Mapping[str, Made]) -> Made:
        if not isinstance(made, Stream):
            raise SchemaError(f"{arguments.place} follows windows or groups", hint="say what is computed in them first: agg")
        return make(made, arguments, known)

    return checked


def _agg(made: Made, arguments: Content, _: Mapping[str, Made]) -> Made:
    if isinstance(made, Stream):
        raise SchemaError(f"{arguments.place} follows a stream", hint="aggregates need window or group before them")
    return made.agg(**{name: text.text() for name, text in arguments.items()})


def _emit(made: Made, arguments: Content, _: Mapping[str, Made]) -> Made:
    emit = getattr(made, "emit", None)
    if emit is None:
        raise SchemaError(f"{arguments.place} follows no window", hint="emit comes right after the agg of a window")
    found = arguments.fields(("early", "every", "late", "until", "mode"))
    options = {name: value.number() if name == "every" else _optional(value) for name, value in found.items()}
    result: Stream = emit(**options)
    return result


def _window(stream: Stream, arguments: Content, _: Mapping[str, Made]) -> Made:
    found = arguments.fields((*_WINDOWS, "every", "offset", "zone", "by"))
    options = {name: _length(found[name]) for name in ("every", "offset", "zone") if name in found}
    chosen = [name for name in _WINDOWS if name in found]
    if len(chosen) != 1:
        raise SchemaError(f"{arguments.place} does not say which window it is", hint=f"one of {', '.join(_WINDOWS)}")
    length = found[chosen[0]]
    try:
        window = _WINDOWS[chosen[0]](*([] if length.value is True else [_length(length)]), **options)
    except TypeError as error:
        raise SchemaError(f"{arguments.place}: {error}") from error
    return stream.window(window, by=found["by"].texts() if "by" in found else ())


_WINDOWS: dict[str, Callable[..., Window]] = {
    "tumbling": windows.tumbling,
    "hopping": windows.hopping,
    "session": windows.session,
    "calendar": windows.calendar,
    "global": windows.global_,
    "sliding": windows.sliding,
    "count": windows.count_window,
    "processing_time": windows.processing_time,
}


def _group(stream: Stream, arguments: Content, _: Mapping[str, Made]) -> Made:
    found = arguments.fields(("by", "ttl"), needed=["by", "ttl"])
    return stream.group(found["by"].texts(), ttl=_optional(found["ttl"]))


def _to_table(stream: Stream, arguments: Content, _: Mapping[str, Made]) -> Made:
    found = arguments.fields(("key", "ttl"), needed=["key"])
    return stream.to_table(found["key"].texts(), ttl=_optional(found["ttl"]) if "ttl" in found else None)


def _to_stream(stream: Stream, arguments: Content, _: Mapping[str, Made]) -> Made:
    arguments.fields(())
    return stream.to_stream()


def _dedup(stream: Stream, arguments: Content, _: Mapping[str, Made]) -> Made:
    found = arguments.fields(("keys", "ttl"), needed=["keys", "ttl"])
    return stream.dedup(found["keys"].texts(), ttl=_optional(found["ttl"]))


def _distinct(stream: Stream, arguments: Content, _: Mapping[str, Made]) -> Made:
    return stream.distinct(ttl=_optional(arguments.fields(("ttl",), needed=["ttl"])["ttl"]))


def _with_previous(stream: Stream, arguments: Content, _: Mapping[str, Made]) -> Made:
    found = arguments.fields(("columns", "by", "ttl"), needed=["by", "ttl"])
    columns = found["columns"].texts() if "columns" in found else ()
    return stream.with_previous(*columns, by=found["by"].texts(), ttl=_optional(found["ttl"]))


def _match(stream: Stream, arguments: Content, _: Mapping[str, Made]) -> Made:
    found = arguments.fields(_MATCH, needed=["by", "pattern", "within"])
    texts = {name: content.text() for name, content in found.items() if name not in ("by", "define", "measures")}
    pairs = {name: {key: one.text() for key, one in found[name].items()} for name in ("define", "measures") if name in found}
    return stream.match(by=found["by"].texts(), **texts, **pairs)  # type: ignore[arg-type]  # each has the type of its name


def _top(stream: Stream, arguments: Content, _: Mapping[str, Made]) -> Made:
    found = arguments.fields(("count", "by", "per", "rank"), needed=["count", "by"])
    rank = found["rank"].text() if "rank" in found else ""
    return stream.top(found["count"].number(), by=found["by"].text(), per=found["per"].texts() if "per" in found else (), rank=rank)


def _flat_map(stream: Stream, arguments: Content, _: Mapping[str, Made]) -> Made:
    found = arguments.fields(("array", "into"), needed=["array", "into"])
    return stream.flat_map(found["array"].text(), found["into"].text())


def _union(stream: Stream, arguments: Content, known: Mapping[str, Made]) -> Made:
    others = [_known(Content(name, arguments.place), known) for name in arguments.texts()]
    return stream.union(*(other for other in others if isinstance(other, Stream)))


def _length(content: Content) -> str | int:
    """A number of records, or a duration."""
    return content.number() if isinstance(content.value, int) else content.text()


def _optional(content: Content) -> str | None:
    return None if content.value is None else content.text()


_METHODS: dict[str, Callable[[Made, Content, Mapping[str, Made]], Made]] = {
    "where": _on_stream(lambda stream, arguments, _: stream.where(arguments.text())),
    "select": _on_stream(lambda stream, arguments, _: stream.select(*arguments.texts())),
    "with_columns": _on_stream(lambda stream, arguments, _: stream.with_columns(**{name: text.text() for name, text in arguments.items()})),
    "with_place": _on_stream(lambda stream, arguments, _: stream.with_place(arguments.text())),
    "flat_map": _on_stream(_flat_map),
    "explode": _on_stream(lambda stream, arguments, _: stream.explode(arguments.text())),
    "union": _on_stream(_union),
    "join": _on_stream(join),
    "join_within": _on_stream(join_within),
    "key_by": _on_stream(lambda stream, arguments, _: stream.key_by(*arguments.texts())),
    "window": _on_stream(_window),
    "group": _on_stream(_group),
    "to_table": _on_stream(_to_table),
    "to_stream": _on_stream(_to_stream),
    "dedup": _on_stream(_dedup),
    "distinct": _on_stream(_distinct),
    "with_previous": _on_stream(_with_previous),
    "match": _on_stream(_match),
    "top": _on_stream(_top),
    "agg": _agg,
    "emit": _emit,
}
