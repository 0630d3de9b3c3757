"""Every code block of the pages that need other servers runs."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.documents import ROOT, pages_of, run_page


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a page; a server that the page started is stopped, even if the page fails."""
    with TemporaryDirectory(prefix="headrace-page-") as name:
        # PostgreSQL, started by root, runs as another user, who must be able to enter.
        Path(name).chmod(0o755)
        monkeypatch.chdir(name)
        monkeypatch.setenv("HEADRACE_HOME", str(Path(name) / ".headrace"))
        yield Path(name)
        subprocess.run([sys.executable, "-m", "headrace", "down"], check=True, capture_output=True)


@pytest.mark.timeout(900)  # a page starts a server and Spark, several times
@pytest.mark.parametrize("page", pages_of("system"), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_the_page_runs(page: Path, folder: Path) -> None:
    run_page(page, folder)
