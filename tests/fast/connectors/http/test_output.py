"""A service behind a URL as an output, against a small service that heeds idempotency keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import headrace as hr
from headrace.connectors.http.output import HttpOutput
from headrace.connectors.output import Writer
from headrace.core import failpoints
from headrace.testing.conformance import COLUMNS, Subject
from headrace.testing.conformance.cases import expect, the_facts_of_a_key_keep_their_order
from headrace.testing.conformance.subject import Letters, SubjectWriter, changes_of, made
from tests.support.http_service import HttpService, served


class Service(HttpService):
    """Answers what `answers` says first, then 200, and 422 to what is bad."""

    def __init__(self) -> None:
        super().__init__("/alerts?from=test")
        self.answers: list[int] = []
        self.headers: list[dict[str, str]] = []

    def answer(self, headers: Mapping[str, str], record: dict[str, Any]) -> int:
        self.headers.append(dict(headers))
        if self.answers:
            return self.answers.pop(0)
        return 422 if record["note"] == "bad" else super().answer(headers, record)


class HttpSubject(Subject):
    whole = False

    def __init__(self, service: Service, **options: Any) -> None:
        self.service = service
        self.target = hr.http(service.url, **options)

    def output(self) -> HttpOutput:
        return self.target.output(COLUMNS, ())

    def rows(self) -> list[dict[str, Any]]:
        return list(self.service.taken.values())


@pytest.fixture
def service() -> Iterator[Service]:
    with served(Service()) as service:
        yield service


def test_a_repeated_epoch_has_the_keys_of_the_first_try(service: Service) -> None:
    subject = HttpSubject(service, headers={"Authorization": "Bearer s3same"})
    SubjectWriter(subject, generation=1).write(1, made(1))
    SubjectWriter(subject, generation=2).write(1, made(1))
    SubjectWriter(subject, generation=2).write(2, made(2))
    expect(subject, [*made(1), *made(2)])
    assert len(service.headers) == 3 * len(made(1))
    assert {headers["Authorization"] for headers in service.headers} == {"Bearer s3same"}
    assert "s3same" not in repr(subject.target) + str(subject.target)


def test_facts_keep_their_order(service: Service) -> None:
    the_facts_of_a_key_keep_their_order(HttpSubject(service))


@pytest.mark.parametrize("rules", ["http.request.before=error(EIO)@4", "http.request.after=error(EIO)@4"])
def test_an_epoch_that_failed_half_way_is_completed_by_its_repetition(service: Service, rules: str) -> None:
    subject = HttpSubject(service)
    hand = SubjectWriter(subject)
    failpoints.configure(rules)
    with pytest.raises(OSError, match=r"http\.request"):
        hand.write(1, made(1))
    failpoints.configure(None)
    assert 0 < len(subject.rows()) < len(made(1))
    hand.write(1, made(1))
    expect(subject, made(1))


def test_a_busy_service_is_tried_again_and_what_it_refuses_is_a_dead_letter(service: Service) -> None:
    subject = HttpSubject(service)
    service.answers = [503, 429, 500]
    hand = SubjectWriter(subject)
    hand.write(1, [*made(1), {"user": "poison", "n": 1, "note": "bad"}])
    expect(subject, made(1))
    (letter,) = hand.letters.found[1]
    assert (letter["user"], letter["reason"]) == ("poison", "answered 422: no")


def test_a_service_that_is_away_stops_the_writer() -> None:
    output = hr.http("http://127.0.0.1:1/x", patience="50ms").output(COLUMNS, ())
    with pytest.raises(hr.ConnectorError, match=r"POST http://127\.0\.0\.1:1/x failed"):
        output.write(Writer("job", "sink"), 1, changes_of(made(1)), Letters())


@pytest.mark.parametrize(
    ("url", "said"), [("https://me:s3same@example.org", "contains a password"), ("ftp://example.org", "begins with http")]
)
def test_an_address_with_a_password_or_of_another_kind_is_refused(url: str, said: str) -> None:
    with pytest.raises(hr.SettingsError, match=said) as refused:
        hr.http(url)
    assert "s3same" not in str(refused.value)
