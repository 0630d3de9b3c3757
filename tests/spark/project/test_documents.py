"""Every code block of the pages that need Spark runs."""

from pathlib import Path

import pytest

from tests.support.documents import ROOT, pages_of, run_page


@pytest.mark.parametrize("page", pages_of("spark"), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / ".headrace"))
    run_page(page, tmp_path)
