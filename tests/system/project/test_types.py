"""Types hold everywhere: mypy in strict mode, as `make check` runs it."""

import subprocess
import sys

import pytest

from tests.support.documents import ROOT


@pytest.mark.timeout(600)  # without a cache it reads everything, and this on one core
def test_types_hold_everywhere() -> None:
    checked = subprocess.run([sys.executable, "-m", "mypy"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
