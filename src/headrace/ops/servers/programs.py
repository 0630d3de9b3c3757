"""How programs of servers are run: as another user where they refuse root, and with the Java of the user."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from headrace.core.errors import SettingsError


def other_user() -> str | None:
    """Who runs the server if this process is root's; None if it is not."""
    return ("postgres" if _known("postgres") else "nobody") if os.geteuid() == 0 else None


def as_other_user() -> list[str]:
    """What a command begins with, for it to run as that user."""
    user = other_user()
    return ["setpriv", f"--reuid={user}", "--regid=" + ("postgres" if user == "postgres" else "nogroup"), "--clear-groups"] if user else []


def java(what: str) -> str:
    """The program that runs a server in Java."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if found is None:
        raise SettingsError("no Java was found", why=f"{what} is a Java program", hint="install Java 17 or newer, or set JAVA_HOME")
    return found


def _known(user: str) -> bool:
    return any(line.startswith(f"{user}:") for line in Path("/etc/passwd").read_text(encoding="utf-8").splitlines())
