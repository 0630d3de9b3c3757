"""The Java that Spark starts: whether it is there, and new enough."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

JAVA = 17

_REMEDY = "install Java 17 or newer (Debian and Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17)"


@dataclass(frozen=True)
class Java:
    """What was found, and what to do if Spark cannot start with it."""

    found: str
    remedy: str | None = None


def java_in(environment: Mapping[str, str]) -> Java:
    """The Java that Spark would start: JAVA_HOME first, then PATH."""
    home = environment.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java", path=environment.get("PATH"))
    if java is None:
        return Java("no java on PATH, and JAVA_HOME is not set", _REMEDY)
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except OSError as error:
        return Java(f"{java} does not start: {error.strerror}", f"unset JAVA_HOME, or {_REMEDY} and set it to that")
    except subprocess.TimeoutExpired:
        return Java(f"{java} -version does not end", _REMEDY)
    named = re.search(r'version "((?:1\.)?(\d+)[^"]*)"', answer.stderr + answer.stdout)
    if named is None:
        return Java(f"{java} does not say its version (exit code {answer.returncode})", _REMEDY)
    source = f"{java}{' (from JAVA_HOME)' if home else ''}"
    if int(named[2]) < JAVA:
        return Java(f"Java {named[1]} at {source} is too old for Spark", _REMEDY + (" and set JAVA_HOME to it" if home else ""))
    return Java(f"Java {named[1]} at {source}")
