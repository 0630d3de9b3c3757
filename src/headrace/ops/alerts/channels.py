"""Channels of alerts: the log, a webhook, and mail. A message that fails is sent again in the next round."""

from __future__ import annotations

import http.client
import json
import logging
import smtplib
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from headrace.core.errors import ConnectorError, SettingsError
from headrace.core.secret import Secret

LOG, WEBHOOK, MAIL = "log", "webhook", "mail"
_log = logging.getLogger("headrace.alerts")

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Channels:
    """The channels of one process; the log is always one."""

    webhook: Secret | None = None
    mail: Secret | None = None
    patience: float = 10.0
    """Seconds that a channel may take for a message."""

    def __post_init__(self) -> None:
        if self.webhook is not None and urlsplit(self.webhook.reveal()).scheme not in ("http", "https"):
            raise SettingsError("alert_webhook is not an address", hint="it begins with http:// or https://")
        if self.mail is not None:
            parts = urlsplit(self.mail.reveal())
            asked = parse_qs(parts.query)
            if parts.scheme not in ("smtp", "smtps") or not parts.hostname or not {"from", "to"} <= set(asked):
                raise SettingsError(
                    "alert_mail is not an address of a mail server",
                    hint="smtp://user:password@host:587/?from=jobs@example.org&to=me@example.org",
                )

    @property
    def names(self) -> list[str]:
        return [LOG, *([WEBHOOK] if self.webhook is not None else []), *([MAIL] if self.mail is not None else [])]

    def tell(self, channel: str, event: Event) -> None:
        """Tell an event; raises `ConnectorError` if that failed."""
        if channel == LOG:
            _log.log(logging.WARNING if event["state"] == "firing" else logging.INFO, "%s", words(event))
        elif channel == WEBHOOK and self.webhook is not None:
            _post(self.webhook, event, self.patience)
        elif channel == MAIL and self.mail is not None:
            _send(self.mail, event, self.patience)


def words(event: Event) -> str:
    """An event as one line."""
    facts = ", ".join(f"{name} {value:.6g}" for name, value in event["facts"].items() if value is not None)
    known = f" ({facts})" if facts else ""
    if event["state"] == "firing":
        return f"alert {event['alert']!r} of job {event['job']!r}: {event['message']}{known}"
    return f"alert {event['alert']!r} of job {event['job']!r} has ended{known}"


def _post(address: Secret, event: Event, patience: float) -> None:
    headers = {"Content-Type": "application/json", "Idempotency-Key": str(event["id"])}
    request = urllib.request.Request(address.reveal(), json.dumps(event).encode(), headers, method="POST")  # noqa: S310 - it was checked
    try:
        urllib.request.urlopen(request, timeout=patience).close()  # noqa: S310
    except urllib.error.HTTPError as error:
        raise ConnectorError(f"the webhook of alerts answered {error.code}") from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise ConnectorError(f"the webhook of alerts cannot be reached: {type(error).__name__}") from error


def _send(address: Secret, event: Event, patience: float) -> None:
    parts = urlsplit(address.reveal())
    asked = parse_qs(parts.query)
    message = EmailMessage()
    # A name may have more than one line, a subject may not.
    message["Subject"] = " ".join(f"[headrace] {event['job']}: {event['alert']} {event['state']}".split())
    message["From"], message["To"] = asked["from"][0], ", ".join(asked["to"])
    message["Message-ID"] = f"<{event['id']}@headrace>"
    message.set_content(f"{words(event)}\n\n{json.dumps(event, indent=1)}\n")
    kind = smtplib.SMTP_SSL if parts.scheme == "smtps" else smtplib.SMTP
    try:
        with kind(parts.hostname or "", parts.port or 0, timeout=patience) as server:
            if parts.username:
                if parts.scheme == "smtp":
                    server.starttls()
                server.login(unquote(parts.username), unquote(parts.password or ""))
            server.send_message(message)
    except (OSError, ValueError, smtplib.SMTPException) as error:
        raise ConnectorError(f"the mail server of alerts does not accept mail: {type(error).__name__}") from error
