"""The topics that an app has beside those it declares: what is late or bad of its streams, and what its job tells of itself."""

from __future__ import annotations


def late_topic(stream: str) -> str:
    return f"{stream}.late"


def dead_topic(stream: str) -> str:
    return f"{stream}.dead"


def accounting_topic(app: str) -> str:
    return f"{app}.accounting"


def hot_topic(app: str) -> str:
    return f"{app}.hot-keys"
