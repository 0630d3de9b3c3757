"""Text without secrets: credentials in addresses, values of names such as password or token, and what the environment keeps secret.

It is a second net. Headrace itself keeps a secret in a `Secret`, which shows itself nowhere; errors of other systems may not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

HIDDEN = "***"
_NAMES = r"[\w.-]*(?:passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)[\w.-]*"
_SECRET_NAME = re.compile(_NAMES, re.IGNORECASE)
# user:password@ of an address.
_ADDRESS = re.compile(r"([\w+.-]+://)[^/\s\"'@]*:[^/\s\"']*@")
# password=value, "password": "value", password 'a value'. Quotes may be escaped, as in JSON within JSON.
_VALUE = re.compile(rf"""({_NAMES}\\*["']?\s*[=:]\s*)(\\*)(["'])(.*?)\2\3|({_NAMES}\s*[=:]\s*)([^\s"',;&\\)}}]+)""", re.IGNORECASE)
_HEADER = re.compile(r"\b(Bearer|Basic)\s+[\w.~+/=-]+", re.IGNORECASE)
# The working directory, of a shell.
_PLACES = ("PWD", "OLDPWD")
# A shorter value is found in too many places that have nothing to do with it.
_LONG_ENOUGH = 6


class Redaction:
    """Hides secrets in text; `environment` has those that are known by their names, and `known` further ones."""

    def __init__(self, environment: Mapping[str, str], known: tuple[str, ...] = ()) -> None:
        named = [value for name, value in environment.items() if _SECRET_NAME.search(name) and name not in _PLACES]
        self._known = sorted({value for value in (*named, *known) if len(value) >= _LONG_ENOUGH}, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """The text with *** for each secret."""
        for value in self._known:
            text = text.replace(value, HIDDEN)
        text = _HEADER.sub(rf"\1 {HIDDEN}", _ADDRESS.sub(rf"\1{HIDDEN}@", text))
        return _VALUE.sub(_hidden, text)


def _hidden(found: re.Match[str]) -> str:
    if found[3] is not None:
        return f"{found[1]}{found[2]}{found[3]}{HIDDEN}{found[2]}{found[3]}"
    return f"{found[5]}{HIDDEN}"
