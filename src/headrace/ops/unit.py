"""The systemd unit of an app's job: started at boot, stopped by SIGTERM, started again after a failure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_TEMPLATE = """\
# /etc/systemd/system/{unit}
[Unit]
Description=Headrace job {job}
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=10min
StartLimitBurst=5

[Service]
Type=exec
{user}WorkingDirectory={directory}
Environment={home}
ExecStart={command}
# The epoch at work finishes first. The JVM and the workers of Spark end with their driver.
KillMode=mixed
KillSignal=SIGTERM
TimeoutStopSec=90
Restart=on-failure
RestartSec=10
NoNewPrivileges=yes
PrivateTmp=yes
ProtectSystem=full

[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True)
class Unit:
    """The content of a job's unit. `python` is the interpreter that has Headrace; `file` may end with `:name` of the app."""

    job: str
    file: str
    home: Path
    python: Path
    user: str | None = None

    @property
    def name(self) -> str:
        return f"headrace-{self.job}.service"

    def __str__(self) -> str:
        path, colon, app = self.file.partition(":")
        file = Path(path).resolve()
        command = [str(self.python), "-m", "headrace", "run", f"{file}{colon}{app}"]
        return _TEMPLATE.format(
            unit=self.name,
            job=_literal(self.job),
            user=f"User={self.user}\n" if self.user else "",
            directory=_literal(str(file.parent)),
            home=quoted(f"HEADRACE_HOME={self.home}"),
            command=" ".join(quoted(word, command=True) for word in command),
        )


def quoted(word: str, *, command: bool = False) -> str:
    """A word as systemd reads it back: in quotes where it needs them, `%` doubled, and in a command line `$`, too.

    >>> quoted("/srv/my app/100%.py", command=True)
    '"/srv/my app/100%%.py"'
    """
    text = _literal(word).replace("\\", "\\\\").replace('"', '\\"')
    text = text.replace("$", "$$") if command else text
    return text if re.fullmatch(r"[\w@%+=:,./$-]+", text) else f'"{text}"'


def _literal(text: str) -> str:
    return text.replace("%", "%%")
