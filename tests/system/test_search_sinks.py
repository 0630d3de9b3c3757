"""Indexes for searching, in a directory and of a real OpenSearch node, as outputs."""

from __future__ import annotations

import itertools
import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.connectors.output import Output
from headrace.core import failpoints
from headrace.ops.servers.opensearch import OpenSearchServer
from headrace.testing.conformance import CASES, COLUMNS, KEY, Subject
from headrace.testing.conformance.cases import expect, the_facts_of_a_key_keep_their_order
from headrace.testing.conformance.subject import SubjectWriter, made
from headrace.testing.faults import FAILPOINTS, faults

_numbers = itertools.count()
_TOO_LONG = "x" * 40_000
OF_A_NODE = ("search.bulk.", "search.mark.")


class DirectorySubject(Subject):
    stall = "stage.middle"

    def __init__(self, directory: Path, key: tuple[str, ...]) -> None:
        self.key, self.target = key, hr.search(directory / "index")
        self.output().prepare(2)

    def output(self) -> Output:
        return self.target.output(COLUMNS, self.key)

    def rows(self) -> list[dict[str, Any]]:
        return sorted(self.target.find("*", limit=1000), key=lambda row: int(row["n"]))


class NodeSubject(Subject):
    stall = "search.bulk.before"
    whole = False
    poison = _TOO_LONG

    def __init__(self, server: OpenSearchServer, key: tuple[str, ...]) -> None:
        self.url, self.key, self.index = server.url, key, f"out-{next(_numbers)}"
        self.target = hr.search(server.url, index=self.index)
        # An index of the user's own: what is too long for a keyword is refused.
        asked("PUT", f"{self.url}/{self.index}", {"mappings": {"properties": {"note": {"type": "keyword"}}}})
        self.output().prepare(2)

    def output(self) -> Output:
        return self.target.output(COLUMNS, self.key)

    def rows(self) -> list[dict[str, Any]]:
        asked("POST", f"{self.url}/{self.index}/_refresh")
        return sorted(self.target.find("*", limit=1000), key=lambda row: int(row["n"]))


def asked(method: str, url: str, body: Any = None) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode() if body else None, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_an_index_in_a_directory_keeps_what_an_output_promises(case: Any, tmp_path: Path) -> None:
    case(DirectorySubject(tmp_path, KEY))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_an_index_of_a_node_keeps_what_an_output_promises(case: Any, opensearch: OpenSearchServer) -> None:
    case(NodeSubject(opensearch, KEY))


def test_an_epoch_passes_every_failpoint_of_a_node(opensearch: OpenSearchServer) -> None:
    subject = NodeSubject(opensearch, KEY)
    with faults(""):
        SubjectWriter(subject).write(1, made(1))
        passed = {name for name in failpoints.hits if name != failpoints.ALL}
    assert passed == {name for name in FAILPOINTS if name.startswith(OF_A_NODE)}


def test_facts_are_added_to_an_index_in_a_directory(tmp_path: Path) -> None:
    the_facts_of_a_key_keep_their_order(DirectorySubject(tmp_path, ()))


def test_facts_are_added_to_an_index_of_a_node(opensearch: OpenSearchServer) -> None:
    the_facts_of_a_key_keep_their_order(NodeSubject(opensearch, ()))


def test_a_new_job_replaces_what_an_earlier_one_left_in_later_epochs(opensearch: OpenSearchServer) -> None:
    subject = NodeSubject(opensearch, KEY)
    SubjectWriter(subject, job="job-1").write(9, made(9))
    SubjectWriter(subject, job="job-2").write(1, made(1)[:3], gone=made(1)[3:])
    expect(subject, made(1)[:3])


def test_an_older_epoch_brings_nothing_back_that_was_removed_since(opensearch: OpenSearchServer) -> None:
    subject = NodeSubject(opensearch, KEY)
    hand = SubjectWriter(subject)
    hand.write(1, made(1))
    hand.write(3, [], gone=made(1)[:1])
    version = (1 << 40) + 2
    late = {"index": {"_id": "u0", "version": version, "version_type": "external"}}
    sent = f"{json.dumps(late)}\n{json.dumps(made(2)[0])}\n".encode()
    request = urllib.request.Request(f"{subject.url}/{subject.index}/_bulk", sent, {"Content-Type": "application/x-ndjson"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert json.load(answer)["items"][0]["index"]["status"] == 409
    expect(subject, made(1)[1:])


def test_words_are_found_on_a_node(opensearch: OpenSearchServer) -> None:
    target = hr.search(opensearch.url, index="words", key="user")
    output = target.output(COLUMNS, KEY)
    output.prepare(1)
    subject = NodeSubject(opensearch, KEY)
    subject.target, subject.index = target, "words"
    SubjectWriter(subject).write(1, [{"user": "a", "n": 1, "note": "Red shoes"}, {"user": "b", "n": 20, "note": "blue hats"}])
    asked("POST", f"{opensearch.url}/words/_refresh")
    assert [row["user"] for row in target.find("shoes")] == ["a"]
    assert [row["user"] for row in target.find("n:[10 TO 30]")] == ["b"]
    with pytest.raises(hr.SettingsError, match="is not a query"):
        target.find("note:[")
