"""The built page belongs to its source, is small, and asks nobody else."""

import gzip
import hashlib
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
WEB, PAGE = ROOT / "web", ROOT / "src" / "headrace" / "serve" / "page"


def test_the_built_files_belong_to_the_source():
    names = ["package.json", "package-lock.json", "tsconfig.json", "build.mjs", *(f"src/{file.name}" for file in (WEB / "src").iterdir())]
    digest = hashlib.sha256()
    for name in sorted(names):
        digest.update(name.encode() + b"\0" + (WEB / name).read_bytes())
    assert (PAGE / "source.sha256").read_text().strip() == digest.hexdigest(), "build the page again: make page"


def test_the_first_load_is_small():
    assert sum(len(gzip.compress(file.read_bytes())) for file in PAGE.iterdir()) <= 150_000


def test_the_page_names_no_other_host():
    # Namespaces of SVG and the like are names, not addresses that are asked.
    for file in PAGE.iterdir():
        found = re.findall(rb"https?://(?!www\.w3\.org/)[\w.]+", file.read_bytes())
        assert found == [], file.name
