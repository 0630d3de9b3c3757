"""The tokens of a server: one for each role, made at the first start, in a file that only its user can read."""

from __future__ import annotations

import hmac
import json
import os
import secrets
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

FILE = "tokens.json"


class Role(IntEnum):
    """The rights of a token; each role includes those before it."""

    NONE = 0
    READ = 1
    PRODUCE = 2
    OPERATE = 3


@dataclass(frozen=True)
class Tokens:
    """The secrets that prove a role."""

    read: str
    produce: str
    operate: str

    def role_of(self, token: str | None) -> Role:
        """The role that a token proves. A wrong token takes as long as a right one."""
        given = (token or "").encode()
        found = Role.NONE
        for role, secret in ((Role.READ, self.read), (Role.PRODUCE, self.produce), (Role.OPERATE, self.operate)):
            if hmac.compare_digest(given, secret.encode()):
                found = role
        return found


def tokens_in(directory: Path) -> Tokens:
    """The tokens of a server that keeps its files in a directory; made on the first start."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / FILE
    if not file.is_file():
        content = {role: secrets.token_urlsafe(24) for role in ("read", "produce", "operate")}
        fresh = directory / f"{FILE}.{os.getpid()}"
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as opened:
            json.dump(content, opened)
        try:
            # If two servers start at once, the first decides.
            os.link(fresh, file)
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    return Tokens(**json.loads(file.read_text(encoding="utf-8")))
