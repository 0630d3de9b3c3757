"""The log, and files that are fed to it, as inputs of a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.testing.conformance.inputs import SOURCE_CASES
from tests.support.source_subjects import FileSource, LogSource

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("kind", [LogSource, FileSource])
@pytest.mark.parametrize("case", SOURCE_CASES, ids=lambda case: case.__name__)
def test_an_input_keeps_what_it_promises(case: Any, kind: type[LogSource], tmp_path: Path) -> None:
    subject = kind(tmp_path)
    if reason := subject.inapplicable.get(case.__name__):
        pytest.skip(reason)
    case(subject)


def test_the_page_of_guarantees_lists_every_case_and_says_why_one_does_not_apply() -> None:
    page = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8").splitlines()
    for case in SOURCE_CASES:
        [row] = [line for line in page if line.startswith(f"| {case.__name__.replace('_', ' ')} |")]
        _, _, log, kafka, files, _ = (cell.strip() for cell in row.split("|"))
        assert log == "yes"
        assert kafka == "yes" or kafka.startswith("does not apply: ")
        reason = FileSource.inapplicable.get(case.__name__)
        assert files == ("yes" if reason is None else f"does not apply: {reason}")
