"""Jars by Maven coordinate: pinned by SHA-256 in a lock file, fetched once into a cache, verified on every use."""

from __future__ import annotations

import hashlib
import http.client
import os
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree as ET

from headrace.core.errors import ConnectorError, SettingsError

_PARALLEL_DOWNLOADS = 8
_ATTEMPTS = 3
_SILENCE_LIMIT_SECONDS = 60


@dataclass(frozen=True)
class Jar:
    """One jar of a lock file.

    >>> Jar("org.slf4j", "slf4j-api", "1.7.36", sha256="d3ef").path
    'org/slf4j/slf4j-api/1.7.36/slf4j-api-1.7.36.jar'
    """

    group: str
    artifact: str
    version: str
    sha256: str
    kind: str = "jar"

    @property
    def path(self) -> str:
        """Its path in every Maven repository, relative to the repository's root."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.artifact}-{self.version}.{self.kind}"

    def matches(self, content: bytes) -> bool:
        return hashlib.sha256(content).hexdigest() == self.sha256


def read_lock(text: str) -> list[Jar]:
    """Parse lines of `sha256  group:artifact:version`, followed by `:zip` for what is not a jar; empty lines and comments (#) are skipped.

    >>> [jar.artifact for jar in read_lock("# broker\\nd3ef  org.slf4j:slf4j-api:1.7.36")]
    ['slf4j-api']
    """
    jars = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            sha256, coordinate = line.split()
            group, artifact, version, *kind = coordinate.split(":")
            jars.append(Jar(group, artifact, version, sha256, *kind))
    return jars


def fetch_jars(jars: Iterable[Jar], cache: Path | None = None) -> list[Path]:
    """Return a file for each jar, in the order given; download those that the cache lacks or has damaged.

    A file appears in the cache whole or not at all, so several processes may fetch at once.
    """
    wanted = list(jars)
    root = (cache or cache_directory()) / "jars"
    missing = [jar for jar in wanted if not _cached(jar, root)]
    if missing:
        repository = maven_repository()
        with ThreadPoolExecutor(_PARALLEL_DOWNLOADS) as pool:
            list(pool.map(lambda jar: _store(jar, _download(jar, repository), root), missing))
    return [root / jar.path for jar in wanted]


def cache_directory() -> Path:
    """`HEADRACE_CACHE`, or ~/.cache/headrace."""
    configured = os.environ.get("HEADRACE_CACHE")
    return Path(configured) if configured else Path.home() / ".cache" / "headrace"


def maven_repository() -> str:
    """The root of the Maven repository to fetch from, ending in a slash.

    `HEADRACE_MAVEN_REPOSITORY` if set; else the mirror of Maven Central in ~/.m2/settings.xml; else Maven Central as Apache Ivy knows it.
    Spark ships Ivy for its own `--packages`: the address comes from the installed Spark and changes with it, so that neither Maven nor an
    address of ours is needed.
    """
    repository = os.environ.get("HEADRACE_MAVEN_REPOSITORY") or _mirror_in_maven_settings() or _central_known_to_ivy()
    return repository.rstrip("/") + "/"


def _mirror_in_maven_settings() -> str | None:
    settings = Path.home() / ".m2" / "settings.xml"
    if not settings.exists():
        return None
    for mirror in ET.parse(settings).iterfind(".//{*}mirror"):  # noqa: S314 - the user's own file
        covered = (mirror.findtext("{*}mirrorOf") or "").split(",")
        if {"*", "central", "external:*"} & {name.strip() for name in covered}:
            return (mirror.findtext("{*}url") or "").strip() or None
    return None


def _central_known_to_ivy() -> str:
    spark = find_spec("pyspark")
    folders = (spark.submodule_search_locations or []) if spark else []
    for ivy in (jar for folder in folders for jar in Path(folder).glob("jars/ivy-*.jar")):
        with zipfile.ZipFile(ivy) as archive:
            for line in archive.read("org/apache/ivy/core/settings/repository.properties").decode().splitlines():
                name, _, value = line.partition("=")
                if name.strip() == "ivy.ibiblio.default.artifact.root":
                    return value.strip()
    raise SettingsError(
        "no Maven repository is known: the installed pyspark has no jars/ivy-*.jar that names one",
        hint="set HEADRACE_MAVEN_REPOSITORY to the address of Maven Central or of your mirror",
    )


def _cached(jar: Jar, root: Path) -> bool:
    file = root / jar.path
    return file.exists() and jar.matches(file.read_bytes())


def _download(jar: Jar, repository: str) -> bytes:
    url = repository + jar.path
    failure: Exception | None = None
    for _ in range(_ATTEMPTS):
        try:
            with urllib.request.urlopen(url, timeout=_SILENCE_LIMIT_SECONDS) as answer:  # noqa: S310 - the lock's hash decides
                content: bytes = answer.read()
        except (OSError, http.client.HTTPException) as error:
            failure = error
            if isinstance(error, urllib.error.HTTPError) and error.code < 500:
                break
            continue
        if jar.matches(content):
            return content
        failure = ConnectorError(f"its SHA-256 is {hashlib.sha256(content).hexdigest()}, the lock file says {jar.sha256}")
    raise ConnectorError(
        f"jar {jar.group}:{jar.artifact}:{jar.version} could not be fetched: {failure}",
        hint="check the network, or set HEADRACE_MAVEN_REPOSITORY to a mirror that has it",
    ) from failure


def _store(jar: Jar, content: bytes, root: Path) -> None:
    file = root / jar.path
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent, suffix=".part", delete=False) as part:
        part.write(content)
    Path(part.name).replace(file)
