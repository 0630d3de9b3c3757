"""The API reference under docs/reference, made from signatures, docstrings and the commands' own help.

`make reference` writes the pages; `tests/fast/project/test_reference.py` compares them with the source.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
WIDTH = 100
# Each page: its title, one sentence, and its names: public ones as they are, others with their module.
PAGES: dict[str, tuple[str, str, list[str]]] = {
    "app": ("App", "What you declare, run and read.", [
        "App", "headrace.plan.explain:Explanation", "headrace.plan.explain:StepInWords", "headrace.jobs.facts.report:Report",
        "headrace.jobs.facts.epochs:Epochs", "headrace.engine.hot_keys:HotKey",
    ]),
    "streams": ("Streams and tables", "What `app.stream(...)` returns, and what its methods return.", [
        "Stream", "Table", "headrace.api.aggregating:Windowed", "headrace.api.aggregating:Results", "headrace.api.aggregating:Grouped",
        "Aggregate",
    ]),
    "windows": ("Windows and watermarks", "What `stream.window(...)` and `watermark=` take.", [
        "tumbling", "hopping", "session", "calendar", "sliding", "count_window", "global_", "custom", "processing_time",
        "bounded", "perfect", "loss_budget",
    ]),
    "sources-and-sinks": ("Sources and sinks", "What `source=` and `app.sink(...)` take.", [
        "log", "kafka", "postgres", "redis", "parquet", "delta", "iceberg", "search", "http", "connector", "avro", "protobuf",
    ]),
    "serving": ("Serving", "Views of a served home, from another program.", [
        "connect", "headrace.serve.client:Connection", "headrace.serve.client:ViewClient", "headrace.serve.client:Change",
    ]),
    "testing": ("Testing", "An app in virtual time, without a JVM.", ["TestDriver"]),
    "log": ("The log", "Topics, and what reads and writes them.", [
        "Log", "Producer", "headrace.log.delivery:Delivery", "headrace.log.delivery:Placed", "headrace.log.files.partition:Appended",
        "Consumer", "GroupConsumer", "headrace.log.groups.settings:GroupSettings",
        "headrace.log.queue.queue:Queue", "headrace.log.queue.message:Message", "headrace.log.queue.queue:Depth",
        "headrace.log.snapshot:Snapshot",
        "Topic", "TopicConfig", "headrace.log.upkeep.maintenance:PartitionReport", "headrace.log.upkeep.repair:RepairReport",
        "headrace.log.upkeep.retention:Removed",
    ]),
    "settings": ("Settings", "What comes from `headrace.toml`, the environment and arguments.", ["Settings", "load_settings", "Secret"]),
    "errors": ("Errors and warnings", "What Headrace raises on purpose. Each has a fact, a reason, a hint, and the line it is about.", [
        "HeadraceError", "PlanError", "SchemaError", "SettingsError", "ConnectorError", "LogError", "JobError", "PlanWarning",
    ]),
}  # fmt: skip
# Members that only other parts of Headrace call.
INTERNAL = {
    "App": {"step_name"},
    "Stream": {"after", "namer", "node"},
    "Log": {"append_epoch", "last_epochs", "partition", "group", "maintenance", "offsets", "transactions", "max_event_time"},
    "Consumer": {"before_poll", "watches"},
    "GroupConsumer": {"claim"},
    "Topic": {"to_json", "from_json"},
    "TestDriver": {"replay"},
    "Results": {"node"},
}
NO_SIGNATURE = {
    "Stream",
    "Table",
    "Windowed",
    "Results",
    "Grouped",
    "Producer",
    "Consumer",
    "GroupConsumer",
    "Queue",
    "Delivery",
    "Connection",
    "ViewClient",
}


def pages() -> dict[str, str]:
    """Every page by its file name."""
    made = {f"{name}.md": _page(title, says, members) for name, (title, says, members) in PAGES.items()}
    made["commands.md"] = _commands()
    return {"README.md": _index(), **made}


def covered() -> set[str]:
    """The public names that the pages have."""
    return {name for _, _, names in PAGES.values() for name in names if ":" not in name}


def _index() -> str:
    lines = [
        "# Reference",
        "Made from the source by `make reference`. The [pages about topics](../../README.md#where-to-read-on) explain more.",
    ]
    lines += ["", "| page | names |", "|---|---|"]
    for name, (title, _, names) in PAGES.items():
        shown = ", ".join(f"`{one.rpartition(':')[2]}`" for one in names)
        lines.append(f"| [{title}]({name}.md) | {shown} |")
    lines.append("| [Commands](commands.md) | `headrace ...` |")
    return "\n".join(lines) + "\n"


def _page(title: str, says: str, names: list[str]) -> str:
    parts = [f"# {title}\n{says}"]
    for name in names:
        module, _, member = name.rpartition(":")
        value = getattr(import_module(module or "headrace"), member)
        parts.append(_class(member, value) if inspect.isclass(value) else _function(member, value))
    return "\n\n".join(parts) + "\n"


def _function(name: str, value: Any) -> str:
    call = value if inspect.isroutine(value) else type(value).__call__
    return f"## {name}\n{_text([_signature(f'hr.{name}', call)])}\n{_prose(inspect.getdoc(value))}"


def _class(name: str, kind: type) -> str:
    parts = [f"## {name}"]
    if name not in NO_SIGNATURE and not dataclasses.is_dataclass(kind) and "__init__" in vars(kind):
        parts.append(_text([_signature(name, kind.__init__)]))
    parts.append(_prose(inspect.getdoc(kind)))
    fields = _fields(kind)
    if fields:
        parts.append("\n".join(fields))
    for method, value in _members(name, kind):
        said = inspect.getdoc(value)
        assert said, f"{name}.{method} has no docstring"
        if isinstance(value, property) or not callable(value):
            parts.append(f"### {name}.{method}\n{_prose(said)}")
        else:
            parts.append(f"### {name}.{method}\n{_text([_signature(method, value)])}\n{_prose(said)}")
    return "\n".join(parts)


def _members(name: str, kind: type) -> Iterator[tuple[str, Any]]:
    """Its public methods and properties, with those of its bases unless these have a page entry of their own."""
    shown_elsewhere = {"Table": "Stream", "Results": "Stream", "GroupConsumer": "Consumer"}.get(name)
    fields = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    hidden = set().union(*(INTERNAL.get(base.__name__, set()) for base in kind.__mro__)) | fields
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__name__ == shown_elsewhere or not base.__module__.startswith("headrace"):
            found = {}
            continue
        found |= {member: value for member, value in vars(base).items() if not member.startswith("_") and member not in hidden}
    for member, value in found.items():
        inner = getattr(value, "func", value) if not isinstance(value, property) else value
        if inspect.isroutine(value) or isinstance(value, property | classmethod | staticmethod) or hasattr(value, "func"):
            said = inspect.getdoc(inner) or (inspect.getdoc(getattr(kind, member)) if callable(inner) else None)
            if said or inspect.isfunction(inner):
                yield member, value if not hasattr(value, "func") else property(inner)


def _fields(kind: type) -> list[str]:
    """The fields of a dataclass or a named tuple, each with the text that stands below it in the source."""
    if not (dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")):
        return []
    lines = []
    for base in reversed(kind.__mro__):
        if not base.__module__.startswith("headrace"):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0].body  # type: ignore[attr-defined]
        for place, item in enumerate(body):
            if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name) or item.target.id.startswith("_"):
                continue
            after = body[place + 1] if place + 1 < len(body) else None
            said = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            lines.append(f"- `{item.target.id}: {ast.unparse(item.annotation)}`{_joined(str(said))}")
    return lines


def _joined(said: str) -> str:
    words = " ".join(said.split())
    return "" if not words else f": {words}" if words.startswith("None") else f": {words[0].lower()}{words[1:]}"


def _signature(name: str, function: Callable[..., Any]) -> str:
    function = function.__func__ if isinstance(function, classmethod | staticmethod) else function
    signature = inspect.signature(function)
    parameters = [one for one in signature.parameters.values() if one.name not in ("self", "cls")]
    parts, keyword_only = [], False
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            if not any(other.kind is other.VAR_POSITIONAL for other in parameters):
                parts.append("*")
        parts.append(_parameter(one))
    returns = "" if signature.return_annotation in (inspect.Signature.empty, None, "None") else f" -> {_type(signature.return_annotation)}"
    line = f"{name}({', '.join(parts)}){returns}"
    if len(line) <= WIDTH:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){returns}"


def _parameter(one: inspect.Parameter) -> str:
    star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    kind = "" if one.annotation is one.empty else f": {_type(one.annotation)}"
    default = "" if one.default is one.empty else f"{' = ' if kind else '='}{_default(one.default)}"
    return f"{star}{one.name}{kind}{default}"


def _default(value: Any) -> str:
    # "required" stands for an option without a default that has to be spelled out, as ttl.
    return "..." if value == "required" else str(value) if type(value).__module__ == "datetime" else repr(value)


def _type(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _text(lines: list[str]) -> str:
    return "\n".join(["```text", *lines, "```"])


def _prose(said: str | None) -> str:
    """A docstring as Markdown: its doctests become blocks."""
    assert said, "a public name has no docstring"
    out: list[str] = []
    block = False
    for line in said.splitlines():
        example = line.startswith((">>>", "..."))
        if example and not block:
            out += [*([""] if out and out[-1] else []), "```text"]
            block = True
        elif block and not line.strip():
            out.append("```")
            block = False
        out.append(line)
    return "\n".join([*out, "```"] if block else out)


def _commands() -> str:
    from headrace.cli.commands import commands

    root: Any = commands()
    parts = ["# Commands\nEvery command of `headrace`, as its `--help` says. `--json` prints one JSON object per line."]
    parts += [_command(f"headrace {name}", command) for name, command in root.commands.items()]
    return "\n\n".join(parts) + "\n"


def _command(name: str, command: Any) -> str:
    said = " ".join(re.split(r"\n\s*\n", inspect.cleandoc(command.help or ""))).replace("\n", " ")
    parts = [f"## {name}\n{said}"]
    shown = [one for one in command.params if not getattr(one, "hidden", False) and "--help" not in one.opts]
    if shown:
        parts.append("\n".join(["| | |", "|---|---|", *(f"| `{_usage(one)}` | {_help(one)} |" for one in shown)]))
    for inner, below in getattr(command, "commands", {}).items():
        parts.append(_command(f"{name} {inner}", below).replace("## ", "### ", 1))
    return "\n\n".join(parts)


def _usage(one: Any) -> str:
    if one.param_type_name == "argument":
        word = one.metavar or one.name.upper()
        return word if one.required else f"[{word}]"
    return ", ".join([*one.opts, *one.secondary_opts]) + ("" if one.is_flag else f" {one.metavar or _metavar(one)}")


def _metavar(one: Any) -> str:
    kind = one.type_descriptor.annotation
    if inspect.isclass(kind) and issubclass(kind, Enum):
        return " or ".join(choice.value for choice in kind)
    return "N" if kind in (int, float) else "PATH" if kind is Path else "TEXT"


def _help(one: Any) -> str:
    return " ".join((getattr(one, "help", None) or "").split()).replace("|", "\\|")


def main() -> None:
    """Write every page, and remove those that are no more."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = pages()
    for file in FOLDER.glob("*.md"):
        if file.name not in made:
            file.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
