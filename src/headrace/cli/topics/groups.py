"""`headrace groups`: how far the readers of topics are, and where they continue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli import render
from headrace.cli.places import Home, TopicName, log_at, place

if TYPE_CHECKING:
    from headrace.log import Log

app = typer.Typer(help="Consumer groups: list, describe, seek, reset and delete them.")

Name = Annotated[str, typer.Argument(metavar="GROUP", help="The group's name.")]


@app.command("list")
def list_groups(home: Home = None, as_json: render.Json = False) -> None:
    """All groups, their members and how far they are behind."""
    render.table(_listed(log_at(home)), as_json=as_json, empty="no groups yet; a consumer with group=... makes one")


@app.command()
def describe(name: Name, home: Home = None, as_json: render.Json = False) -> None:
    """A group's members, and for each partition its committed offset and lag."""
    told = log_at(home).describe_group(name)
    if render.for_programs(as_json):
        render.record(told)
        return
    render.note(f"group {name} is {told['state']}, generation {told['generation']}, {len(told['members'])} members")
    shown = ("topic", "partition", "committed", "end", "lag", "lag_seconds", "member")
    render.table(({column: row[column] for column in shown} for row in told["partitions"]), empty="it has committed nothing")


@app.command()
def seek(
    name: Name,
    topic: TopicName,
    to: Annotated[str, typer.Argument(metavar="PLACE", help="beginning, end, an offset, a time, or how long ago (10 minutes).")],
    partition: Annotated[int | None, typer.Option("--partition", "-p", help="Only this partition.")] = None,
    home: Home = None,
    as_json: render.Json = False,
) -> None:
    """Let a group continue from another place; it must have no live members."""
    moved = log_at(home).seek_group(name, topic, place(to), partition)
    render.table(({"topic": topic, "partition": index, "committed": offset} for (topic, index), offset in moved.items()), as_json=as_json)


@app.command()
def reset(
    name: Name,
    topic: Annotated[str | None, typer.Argument(metavar="TOPIC", help="Only this topic.")] = None,
    home: Home = None,
) -> None:
    """Forget what a group has committed, so that it starts again; it must have no live members."""
    log_at(home).reset_group(name, topic)
    render.note(f"group {name} starts again" + (f" in {topic}" if topic else ""))


@app.command()
def delete(name: Name, home: Home = None) -> None:
    """Forget a group and all it has committed; it must have no live members."""
    log_at(home).delete_group(name)
    render.note(f"group {name} is deleted")


def _listed(log: Log) -> Iterator[dict[str, Any]]:
    for name in log.group_names():
        told = log.describe_group(name)
        behind = [row["lag_seconds"] for row in told["partitions"] if row["lag_seconds"] is not None]
        yield {
            "group": name,
            "state": told["state"],
            "members": len(told["members"]),
            "topics": ", ".join(sorted({row["topic"] for row in told["partitions"]})),
            "lag": sum(row["lag"] for row in told["partitions"]),
            "lag_seconds": max(behind, default=None),
        }
