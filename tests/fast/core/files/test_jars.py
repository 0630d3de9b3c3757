"""Fetching jars by coordinate."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path

import pytest

from headrace.core.errors import ConnectorError
from headrace.core.files.jars import Jar, fetch_jars, maven_repository, read_lock


def jar(artifact: str, content: bytes) -> Jar:
    return Jar("org.example", artifact, "1.0", hashlib.sha256(content).hexdigest())


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "repository"
    for artifact in ("one", "two"):
        file = root / f"org/example/{artifact}/1.0/{artifact}-1.0.jar"
        file.parent.mkdir(parents=True)
        file.write_bytes(artifact.encode())
    monkeypatch.setenv("HEADRACE_MAVEN_REPOSITORY", root.as_uri())
    return root


def test_jars_come_in_the_order_asked_for(repository: Path, tmp_path: Path) -> None:
    paths = fetch_jars([jar("two", b"two"), jar("one", b"one")], tmp_path / "cache")
    assert [path.read_bytes() for path in paths] == [b"two", b"one"]


def test_a_cached_jar_is_not_fetched_again(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch_jars([jar("one", b"one")], tmp_path / "cache")
    monkeypatch.setenv("HEADRACE_MAVEN_REPOSITORY", (tmp_path / "nowhere").as_uri())
    assert fetch_jars([jar("one", b"one")], tmp_path / "cache")[0].read_bytes() == b"one"


def test_a_damaged_jar_in_the_cache_is_replaced(repository: Path, tmp_path: Path) -> None:
    path = fetch_jars([jar("one", b"one")], tmp_path / "cache")[0]
    path.write_bytes(b"on")
    assert fetch_jars([jar("one", b"one")], tmp_path / "cache")[0].read_bytes() == b"one"


def test_a_jar_with_another_content_than_the_lock_says_is_refused_and_not_kept(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match=r"org\.example:one:1\.0 could not be fetched: its SHA-256 is"):
        fetch_jars([jar("one", b"something else")], tmp_path / "cache")
    assert not [path for path in tmp_path.joinpath("cache").rglob("*") if path.is_file()]


def test_a_jar_that_the_repository_lacks_is_named(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match=r"org\.example:three:1\.0 could not be fetched") as raised:
        fetch_jars([jar("three", b"three")], tmp_path / "cache")
    assert "HEADRACE_MAVEN_REPOSITORY" in str(raised.value)


def test_the_mirror_of_the_maven_settings_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HEADRACE_MAVEN_REPOSITORY", raising=False)
    mirror = "<mirror><mirrorOf>central, other</mirrorOf><url>https://mirror.example/maven</url></mirror>"
    settings = f'<settings xmlns="http://maven.apache.org/SETTINGS/1.0.0"><mirrors>{mirror}</mirrors></settings>'
    (tmp_path / ".m2").mkdir()
    (tmp_path / ".m2/settings.xml").write_text(settings)
    assert maven_repository() == "https://mirror.example/maven/"


def test_without_settings_the_repository_is_the_one_that_spark_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HEADRACE_MAVEN_REPOSITORY", raising=False)
    assert maven_repository().startswith("https://")
    assert maven_repository().endswith("/maven2/")


def test_every_jar_of_the_kafka_lock_is_pinned_once() -> None:
    jars = read_lock(files("headrace.ops.servers").joinpath("kafka-jars.lock").read_text())
    assert "kafka_2.13" in {jar.artifact for jar in jars}
    assert len({(jar.group, jar.artifact) for jar in jars}) == len(jars)
    assert all(len(jar.sha256) == 64 for jar in jars)
