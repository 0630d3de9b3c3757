"""What declarations of targets have in common."""

from __future__ import annotations

from importlib import import_module

from headrace.core.errors import SettingsError


class FactsOnly:
    """A target that can only be added to."""

    @property
    def key(self) -> tuple[str, ...]:
        return ()

    @property
    def append_only(self) -> bool:
        return True

    @property
    def replaces(self) -> bool:
        return False


class Changeable:
    """A target whose rows can be replaced and removed, always."""

    @property
    def append_only(self) -> bool:
        return False

    @property
    def replaces(self) -> bool:
        return True


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
