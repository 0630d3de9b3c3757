"""The log of a command, and the options that name it."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headrace.log import Log

# Logs of the running command; the command line closes them when it ends.
opened = ExitStack()

Home = Annotated[
    Path | None,
    typer.Option("--home", help="The home of the log, jobs and views; by default HEADRACE_HOME, home in headrace.toml, or .headrace."),
]


def complete_topic(incomplete: str) -> list[str]:
    """Topic names for the shell; only the directory is read, so that it is quick."""
    from headrace.core.settings import load_settings

    topics = load_settings().home / "log" / "topics"
    names = [path.name for path in topics.iterdir()] if topics.is_dir() else []
    return sorted(name for name in names if name.startswith(incomplete) and not name.startswith(("~", "__")))


TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.", autocompletion=complete_topic)]


def log_at(home: Path | None, *, create: bool = False) -> Log:
    """The log of the home in force. One that does not exist is an error, unless it may be created."""
    from headrace.core.errors import LogError
    from headrace.core.settings import follow_log_level, load_settings
    from headrace.log import Log

    settings = load_settings(home=home)
    follow_log_level(settings)
    path = settings.home / "log"
    if not create and not path.is_dir():
        raise LogError(
            f"there is no log in {path.parent}",
            hint="create topics (headrace topics create --app FILE, or NAME), or name the home with --home",
        )
    return opened.enter_context(Log(path))


def place(text: str, now: datetime | None = None) -> str | int | datetime:
    """A place in a topic as people write it: `beginning`, `end`, an offset, a time, or a duration that counts back from now.

    >>> place("17"), place("end")
    (17, 'end')
    """
    from headrace.core.durations import duration
    from headrace.core.errors import SettingsError

    if text in ("beginning", "end"):
        return text
    if text.removeprefix("-").isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except ValueError:
        pass
    try:
        back: timedelta = duration(text.removesuffix("ago").strip())
    except SettingsError as error:
        raise SettingsError(
            f"{text!r} is not a place in a topic",
            hint='give "beginning", "end", an offset, a time ("2026-01-01T12:00:00Z") or how long ago ("10 minutes")',
        ) from error
    return (now or datetime.now(UTC)) - back
