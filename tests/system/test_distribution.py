"""The wheel and the sdist that `make dist` builds: what is in them, and the README's first app on an installed wheel."""

import os
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.documents import ROOT, blocks_of

README = ROOT / "README.md"


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[str, Path]:
    """The distributions, built as `make dist` does."""
    folder = tmp_path_factory.mktemp("dist")
    ran([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory) -> Path:
    """A fresh environment with the wheel in it. Of all that is installed here it sees what the wheel depends on, and nothing else."""
    folder = tmp_path_factory.mktemp("fresh")
    ran([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], folder)
    (packages,) = (folder / "venv").glob("lib/python*/site-packages")
    seen = folder / "seen"
    link_dependencies(seen)
    (packages / "seen.pth").write_text(f"{seen}\n")
    python = folder / "venv" / "bin" / "python"
    # Without an index pip refuses what the wheel depends on and is not there.
    ran([sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-index", str(built["wheel"])], folder)
    return python


def link_dependencies(folder: Path) -> None:
    """Links to the installed packages that Headrace needs without any extra, found by their metadata."""
    folder.mkdir()
    found: dict[str, Distribution] = {}
    waiting = ["headrace"]
    while waiting:
        for text in distribution(waiting.pop()).requires or []:
            wanted = Requirement(text)
            if wanted.name not in found and (wanted.marker is None or wanted.marker.evaluate({"extra": ""})):
                found[wanted.name] = distribution(wanted.name)
                waiting.append(wanted.name)
    for package in found.values():
        for part in {file.parts[0] for file in package.files or [] if file.parts[0] not in ("..", "__pycache__")}:
            if not (folder / part).exists():
                (folder / part).symlink_to(package.locate_file(part))


def ran(command: list[str], folder: Path) -> str:
    """What a command printed, run without anything that would let it see this checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HEADRACE", "COV"))}
    answer = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, f"{' '.join(command)}\n{answer.stdout}{answer.stderr}"
    return answer.stdout


def files_of(*folders: str) -> set[str]:
    """The files of folders of this checkout, without what Python compiled and npm installed."""
    made = {"__pycache__", "node_modules"}
    found = {file for folder in folders for file in (ROOT / folder).rglob("*") if file.is_file() and made.isdisjoint(file.parts)}
    return {str(file.relative_to(ROOT)) for file in found}


def test_the_wheel_holds_the_package_and_nothing_else(built):
    names = set(zipfile.ZipFile(built["wheel"]).namelist())
    metadata = {name for name in names if ".dist-info/" in name}
    assert names - metadata == {name.removeprefix("src/") for name in files_of("src/headrace")}
    assert {Path(name).suffix for name in names - metadata} == {".py", ".typed", ".lock", ".sh", ".css", ".html", ".js", ".sha256", ".onnx"}
    assert {Path(name).name for name in metadata} == {"METADATA", "WHEEL", "RECORD", "LICENSE", "entry_points.txt"}


def test_the_sdist_holds_the_sources_with_their_tests_and_documents(built):
    with tarfile.open(built["sdist"]) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    folders = ("src", "tests", "apps", "bench", "docs", "scenarios", "requirements", "scripts", "web", "deploy")
    assert {name for name in names if "/" in name} == files_of(*folders)
    assert names >= {"PKG-INFO", "pyproject.toml", "README.md", "LICENSE", "Makefile", "conftest.py"}


def test_the_extras_that_the_readme_names_are_those_of_the_wheel(built):
    archive = zipfile.ZipFile(built["wheel"])
    (name,) = [name for name in archive.namelist() if name.endswith("METADATA")]
    lines = archive.read(name).decode().splitlines()
    extras = {line.removeprefix("Provides-Extra: ") for line in lines if line.startswith("Provides-Extra: ")}
    text = README.read_text(encoding="utf-8")
    assert extras == {"delta", "h3", "iceberg", "kafka", "notebook", "onnx", "otel", "postgres", "redis", "search"}
    assert [extra for extra in sorted(extras) if f"| `{extra}` |" not in text] == []


def test_the_first_app_of_the_readme_runs_on_an_installed_wheel(installed, tmp_path):
    blocks = list(blocks_of(README))
    (app,) = [block for block in blocks if block.file == "app.py"]
    (test,) = [block for block in blocks if "hr.TestDriver" in block.text]
    (tmp_path / "app.py").write_text(app.text, encoding="utf-8")
    (tmp_path / "test_app.py").write_text(f"from app import app\n{test.text}\nprint(hr.__file__)", encoding="utf-8")
    place = ran([str(installed), "test_app.py"], tmp_path).strip()
    assert Path(place).is_relative_to(installed.parent.parent)

    command = str(installed.with_name("headrace"))
    assert "explain" in ran([command, "--help"], tmp_path)
    assert "window" in ran([command, "explain", "app.py"], tmp_path)
