"""Checks and words that declarations of targets share."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from headrace.core.errors import SettingsError

# The promises of sinks that the driver commits.
STAGED = "tasks stage an epoch; the driver"
AT_ONCE = "an epoch of all tasks at once"


def need_text(option: str, value: object, example: str) -> None:
    """Raise if an option that is a text is something else, or empty.

    >>> need_text("servers", None, "broker:9092")
    Traceback (most recent call last):
    headrace.core.errors.SettingsError: servers=None is not a text
      hint: as in servers='broker:9092'
    """
    if not isinstance(value, str) or not value.strip():
        raise SettingsError(f"{option}={value!r} is not a text", hint=f"as in {option}={example!r}")


def path_of(place: object) -> Path:
    """A directory as a user gives it."""
    if not isinstance(place, str | Path) or not str(place):
        raise SettingsError(f"{place!r} is not a directory", hint='give its path: "exports/views"')
    return Path(place)


def need_client(module: str, what: str, extra: str) -> None:
    """Raise, with what to do, if the client of another system is not installed.

    >>> need_client("not_there", "a client of nothing", "nothing")
    Traceback (most recent call last):
    headrace.core.errors.SettingsError: a client of nothing is not installed
      hint: pip install 'headrace[nothing]'
    """
    try:
        import_module(module)
    except ImportError as error:
        raise SettingsError(f"{what} is not installed", hint=f"pip install 'headrace[{extra}]'") from error
