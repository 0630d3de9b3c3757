"""The topics of an app in addition to those it declares: late and bad records of its streams, and its job's accounting."""

from __future__ import annotations


def late_topic(stream: str) -> str:
    return f"{stream}.late"


def dead_topic(stream: str) -> str:
    return f"{stream}.dead"


def accounting_topic(app: str) -> str:
    return f"{app}.accounting"


def hot_topic(app: str) -> str:
    return f"{app}.hot-keys"
