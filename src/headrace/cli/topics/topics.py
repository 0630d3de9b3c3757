"""`headrace topics`: create, list, describe, alter and delete topics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli import render
from headrace.cli.places import Home, TopicName, log_at

if TYPE_CHECKING:
    from headrace.log import Log

app = typer.Typer(help="Create, list, describe, alter and delete topics.")

Partitions = Annotated[int | None, typer.Option("--partitions", "-p", min=1, help="The number of partitions.")]
Schema = Annotated[str | None, typer.Option("--schema", "-s", help='Columns as Spark writes them: "url string, viewed_at timestamp".')]
Config = Annotated[
    list[str] | None, typer.Option("--config", "-c", metavar="NAME=VALUE", help="A setting under Kafka's name; may be repeated.")
]


@app.command()
def create(
    name: Annotated[str | None, typer.Argument(metavar="TOPIC", help="The topic's name.")] = None,
    app_file: Annotated[
        str | None, typer.Option("--app", metavar="FILE", help="Create the topics that the streams of this app read, instead of one.")
    ] = None,
    partitions: Partitions = 1,
    schema: Schema = None,
    key: Annotated[list[str] | None, typer.Option("--key", "-k", help="A column that is the key, or part of it; may be repeated.")] = None,
    time: Annotated[str | None, typer.Option("--time", "-t", help="The column with the event time.")] = None,
    config: Config = None,
    if_absent: Annotated[bool, typer.Option("--if-absent", help="Do nothing if the topic exists with the same columns.")] = False,
    home: Home = None,
) -> None:
    """Create a topic; without a schema its records are bytes. With --app, create the missing topics of an app, as its first run would."""
    if (name is None) == (app_file is None):
        raise typer.BadParameter("give the name of a topic, or --app FILE")
    if name is None:
        _create_for(str(app_file))
        return
    topic = log_at(home, create=True).create_topic(
        name, partitions=partitions or 1, schema=schema, key=key or (), time=time, config=_settings(config), exist_ok=if_absent
    )
    render.note(f"topic {topic.name} has {topic.partitions} partition{'s' if topic.partitions > 1 else ''}")


@app.command("list")
def list_topics(
    internal: Annotated[bool, typer.Option("--internal", help="The log's own topics, too.")] = False,
    home: Home = None,
    as_json: render.Json = False,
) -> None:
    """All topics: partitions, records, bytes and the latest event time."""
    from headrace.core.settings import load_settings

    there = (load_settings(home=home).home / "log").is_dir()
    rows = _listed(log_at(home), internal=internal) if there else iter(())
    render.table(rows, as_json=as_json, empty="no topics yet; headrace topics create NAME makes one")


@app.command()
def describe(name: TopicName, home: Home = None, as_json: render.Json = False) -> None:
    """A topic's columns and settings, and the offsets of each partition."""
    from headrace.core.columns.schema import declared

    told = log_at(home).describe(name)
    partitions = [_readable(row) for row in told.pop("partitions")]
    told |= {"columns": declared(told["columns"])}
    if render.for_programs(as_json):
        render.record({**told, "partitions": partitions})
        return
    properties = {label: told[label] or "none" for label in ("name", "columns", "key", "time")} | told["config"]
    render.table([{"property": name, "value": str(value)} for name, value in properties.items()])
    render.table(partitions)


@app.command()
def alter(name: TopicName, partitions: Partitions = None, schema: Schema = None, config: Config = None, home: Home = None) -> None:
    """Add partitions, add columns at the end, or change settings."""
    if partitions is None and schema is None and not config:
        raise typer.BadParameter("give --partitions, --schema or --config")
    topic = log_at(home).alter_topic(name, partitions=partitions, schema=schema, config=_settings(config))
    render.note(f"topic {topic.name} is altered")


@app.command()
def delete(
    names: Annotated[list[str], typer.Argument(metavar="TOPIC", help="The topics' names.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    home: Home = None,
) -> None:
    """Delete topics and all their records."""
    log = log_at(home)
    for name in names:
        records = sum(part["end"] - part["start"] for part in log.describe(name)["partitions"])
        if not yes:
            typer.confirm(f"delete topic {name} with {records:,} records?", abort=True, err=True)
        log.delete_topic(name)
        render.note(f"topic {name} is deleted")


def _create_for(file: str) -> None:
    from headrace.cli.app_file import app_in
    from headrace.jobs.start.inputs import create_inputs

    app = app_in(file)
    made = create_inputs(app.log, app.plan())
    render.note(f"created {', '.join(made)}" if made else f"the topics of app {app.name!r} exist")


def _settings(pairs: list[str] | None) -> dict[str, int | str]:
    wrong = next((pair for pair in pairs or [] if "=" not in pair), None)
    if wrong is not None:
        raise typer.BadParameter(f"{wrong!r} is not NAME=VALUE", param_hint="--config")
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs or [])}


def _listed(log: Log, *, internal: bool) -> Iterator[dict[str, Any]]:
    for topic in log.topics(internal=internal):
        parts = log.describe(topic.name)["partitions"]
        times = [part["max_event_time"] for part in parts if part["max_event_time"] is not None]
        yield {
            "topic": topic.name,
            "partitions": topic.partitions,
            "records": sum(part["end"] - part["start"] for part in parts),
            "bytes": sum(part["bytes"] for part in parts),
            "latest": _readable({"max_event_time": max(times, default=None)})["latest"],
            "policy": topic.config.cleanup_policy,
        }


def _readable(partition: dict[str, Any]) -> dict[str, Any]:
    from headrace.core.clock import to_datetime

    latest = partition.pop("max_event_time")
    return {**partition, "latest": to_datetime(latest) if latest is not None else None}
