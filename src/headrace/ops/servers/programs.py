"""Programs of servers: run as another user where they refuse root, and with the Java of the user."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
from pathlib import Path

from headrace.core.errors import SettingsError


def other_user() -> str | None:
    """The user that runs the server if this process is root's; None if it is not."""
    return ("postgres" if _known("postgres") else "nobody") if os.geteuid() == 0 else None


def as_other_user() -> list[str]:
    """The prefix of a command that runs it as that user."""
    user = other_user()
    return ["setpriv", f"--reuid={user}", "--regid=" + ("postgres" if user == "postgres" else "nogroup"), "--clear-groups"] if user else []


def refuse_unreachable(directory: Path, user: str) -> None:
    """Raise if a folder above `directory` admits only its owner, and that is another user."""
    owner = pwd.getpwnam(user).pw_uid
    for folder in directory.resolve().parents:
        status = folder.stat()
        if status.st_uid != owner and not status.st_mode & stat.S_IXOTH:
            raise SettingsError(
                f"user {user!r} cannot enter {folder}",
                why="the server refuses to run as root, so it runs as that user, with its data below this folder",
                hint="run headrace as another user than root, or set HEADRACE_HOME to a folder that others may enter",
            )


def java(what: str) -> str:
    """The program that runs a Java server."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if found is None:
        raise SettingsError("no Java was found", why=f"{what} is a Java program", hint="install Java 17 or newer, or set JAVA_HOME")
    return found


def _known(user: str) -> bool:
    return any(line.startswith(f"{user}:") for line in Path("/etc/passwd").read_text(encoding="utf-8").splitlines())
