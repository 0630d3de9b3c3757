"""A finding: a measured fact about a job, since when it is true, why it matters, and the remedy."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Finding:
    """The result of a rule. `wrong` is False for what only explains a wait, such as a window that is still open."""

    rule: str
    fact: str
    since: datetime | None = None
    why: str | None = None
    remedy: str | None = None
    step: str | None = None
    wrong: bool = True

    def to_json(self) -> dict[str, Any]:
        """The finding as plain values."""
        return {**asdict(self), "since": None if self.since is None else self.since.isoformat().replace("+00:00", "Z")}

    def __str__(self) -> str:
        since = f" (since {self.since:%Y-%m-%d %H:%M:%S} UTC)" if self.since else ""
        details = (("why", self.why), ("remedy", self.remedy))
        return "\n".join([f"{self.rule}: {self.fact}{since}", *(f"  {label}: {text}" for label, text in details if text)])
