"""Connectors by their name: those of Headrace, and those that installed packages register."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from headrace.core.errors import SettingsError
from headrace.core.nearest import choices
from headrace.core.where import caller

GROUP = "headrace.connectors"
_OURS = ("delta", "http", "iceberg", "kafka", "parquet", "postgres", "redis", "search")


def connector(name: str) -> Callable[..., Any]:
    """The declaration of a target or a source by its name: `hr.connector("redis")` is `hr.redis`.

    A package adds its own with an entry point of the group `headrace.connectors`. It must be installed wherever tasks run.

    >>> str(connector("parquet")("exports/views"))
    'Parquet files in exports/views'
    """
    if name in _OURS:
        ours: Callable[..., Any] = getattr(import_module(f"headrace.connectors.{name}.declaration"), name)
        return ours
    brought = {found.name: found for found in entry_points(group=GROUP)}
    if name not in brought:
        hint = f"{choices(name, sorted({*_OURS, *brought}), 'connectors')}; others come with the package that provides them"
        raise SettingsError(f"there is no connector {name!r}", hint=hint, where=caller())
    return _loaded(brought[name])


def _loaded(found: EntryPoint) -> Callable[..., Any]:
    try:
        loaded = found.load()
    except (ImportError, AttributeError) as error:
        raise SettingsError(f"connector {found.name!r} cannot be loaded: {error}", hint=f"its package names {found.value!r}") from error
    if not callable(loaded):
        raise SettingsError(f"connector {found.name!r} is {type(loaded).__name__}", hint=f"{found.value} must return a target when called")
    declares: Callable[..., Any] = loaded
    return declares
