"""The tree holds nothing of the machine it was written on, and the locks nothing of a package index."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# Letters in brackets keep this file from finding itself.
PLACES = re.compile(r"""/[w]ork/|/[f]arm/|/[r]oot/|(?<!xmlns=")https?://[a-z0-9.-]*(?:maven|pyp[i]|npmj[s]|[d]ebian)[a-z0-9.-]*/""")
WORDS = re.compile(r"\b(?:ai [a]gent|language [m]odel|[p]rompted|[s]ubagent|[c]laude|[g]pt)\b", re.IGNORECASE)
UNFINISHED = re.compile(r"\bNotImplementedErro[r]|\bTOD[O]\b|\bFIXM[E]\b|\bXX[X]\b")


def tracked(pattern: str = "") -> list[Path]:
    if not (ROOT / ".git").exists():
        return unpacked(pattern)
    listed = subprocess.run(
        ["git", "ls-files", "-z", *([pattern] if pattern else [])], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def unpacked(pattern: str) -> list[Path]:
    """The files of a source distribution, without what commands made there."""
    found = (ROOT / "src").rglob("*") if pattern == "src" else ROOT.rglob(pattern or "*")
    return [file for file in found if file.is_file() and not any(part.startswith(".") for part in file.relative_to(ROOT).parts)]


def places_of(expression: re.Pattern[str], files: list[Path]) -> list[str]:
    found = []
    for file in files:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue  # a picture, a segment of the log: not text
        found += [
            f"{file.relative_to(ROOT)}:{number} {line.strip()[:80]}" for number, line in enumerate(lines, 1) if expression.search(line)
        ]
    return found


def test_no_file_names_a_place_of_one_machine_or_a_registry():
    assert places_of(PLACES, [file for file in tracked() if "lock" not in file.name]) == []


def test_no_file_speaks_of_how_it_was_written():
    assert places_of(WORDS, tracked()) == []


def test_product_code_has_no_unfinished_marks():
    assert places_of(UNFINISHED, tracked("src")) == []


def test_no_source_file_is_longer_than_500_lines():
    long = [file for file in tracked("*.py") if len(file.read_text(encoding="utf-8").splitlines()) > 500]
    assert [str(file.relative_to(ROOT)) for file in long] == []


@pytest.mark.parametrize("lock", ["build.txt", "lock.txt"])
def test_locks_pin_every_package_with_hashes_and_name_no_index(lock):
    text = (ROOT / "requirements" / lock).read_text()
    assert re.findall(r"https?:|--index|--extra-index|--find-links|--trusted", text) == []
    packages = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert packages
    assert [package.splitlines()[0] for package in packages if "==" not in package or "--hash=sha256:" not in package] == []


@pytest.mark.parametrize(
    "text", ["see /ro" + "ot/notes", "open /wo" + "rk/main", "from https://registry.npmj" + "s.org/x", "https://py" + "pi.org/simple"]
)
def test_a_place_is_found(text):
    assert PLACES.search(text)
