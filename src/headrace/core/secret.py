"""A password or token that shows itself only when asked."""

from __future__ import annotations

import hmac


class Secret:
    """Text that appears in no repr, no formatted string, no log line and no traceback; `reveal` returns it.

    It may be copied and pickled (a task in another process needs it too) and stays hidden there.

    >>> password = Secret("s3same")
    >>> f"{password} {password!r}"
    'Secret(***) Secret(***)'
    >>> password.reveal()
    's3same'
    """

    __slots__ = ("__text",)

    def __init__(self, text: str) -> None:
        self.__text = text

    def reveal(self) -> str:
        """The text itself. Keep the result out of variables: a traceback with locals would show it."""
        return self.__text

    def __repr__(self) -> str:
        return "Secret(***)"

    def __format__(self, form: str) -> str:
        return format(repr(self), form)

    def __bool__(self) -> bool:
        return bool(self.__text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self.__text.encode(), other.__text.encode())

    def __hash__(self) -> int:
        return hash(self.__text)

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        return Secret, (self.__text,)
