"""scripts/setup.sh, run on machines that lack something: one sentence says what and how to get it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOOLS = ["sh", "dirname", "cat", "cksum", "sed", "grep", "id", "uname", "rm", "mkdir", "ln"]
JAVA_17 = """echo 'openjdk version "17.0.9" 2023-10-17' >&2"""
# What `headrace prepare` leaves.
PREPARED = "mkdir -p .venv/share/headrace; : > .venv/share/headrace/spark.jsa"


class Machine:
    """A checkout and a PATH with nothing on it but basic tools and what a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.checkout = folder / "checkout"
        self.path = folder / "bin"
        self.path.mkdir(parents=True)
        for tool in TOOLS:
            (self.path / tool).symlink_to(shutil.which(tool))
        shutil.copytree(ROOT / "scripts", self.checkout / "scripts")
        shutil.copytree(ROOT / "requirements", self.checkout / "requirements")
        shutil.copy(ROOT / "pyproject.toml", self.checkout)

    def program(self, name: str, script: str) -> Path:
        """Put a program on the PATH, in the place of the real one."""
        file = self.path / name
        file.unlink(missing_ok=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        return file

    def fake_python(self, pip: str, headrace: str = "true") -> None:
        """A new enough Python whose virtual environments have a made-up pip and Headrace; each call of pip is one line in `calls`."""
        inside = self.program("spare/python", f'case $2 in pip) echo "$@" >> {self.checkout}/calls; {pip} ;; headrace) {headrace} ;; esac')
        self.program("python3.11", f'if [ "$2" = venv ]; then mkdir -p "$4/bin" && ln -sf {inside} "$4/bin/python"; fi')

    def calls(self) -> list[str]:
        file = self.checkout / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def setup(self, *needs: str, **environment: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if name.startswith(("SSL_", "LANG", "TMP"))}
        variables = {**kept, "PATH": str(self.path), "HOME": str(self.checkout), **environment}
        return subprocess.run([self.checkout / "scripts" / "setup.sh", *needs], env=variables, capture_output=True, text=True, check=False)


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path)
    machine.program("id", "echo 1000")
    return machine


def only_sentence(answer: subprocess.CompletedProcess[str]) -> str:
    assert answer.returncode == 1, answer
    (sentence,) = answer.stderr.splitlines()
    assert sentence.startswith("headrace: ")
    assert sentence.endswith(".")
    return sentence


def test_without_java_the_sentence_says_how_to_get_it(machine):
    sentence = only_sentence(machine.setup("java"))
    assert "Java 17 or newer and there is none" in sentence
    assert "apt-get install openjdk-17-jre-headless" in sentence


@pytest.mark.parametrize(("said", "number"), [('openjdk version "11.0.21" 2023-10-17', "11"), ('java version "1.8.0_392"', "8")])
def test_an_old_java_is_named(machine, said, number):
    machine.program("java", f"echo '{said}' >&2")
    assert f"the java on your PATH is Java {number}:" in only_sentence(machine.setup("java"))


def test_the_java_of_java_home_counts_as_it_does_for_spark(machine):
    machine.program("java", JAVA_17)
    machine.program("old/bin/java", "echo 'openjdk version \"11.0.2\"' >&2")
    assert "JAVA_HOME points to Java 11" in only_sentence(machine.setup("java", JAVA_HOME=str(machine.path / "old")))
    assert "has no working bin/java: unset JAVA_HOME" in only_sentence(machine.setup("java", JAVA_HOME="/gone"))


def test_a_java_that_only_offers_to_be_installed_is_none(machine):
    machine.program("java", "echo 'The operation could not be completed. Unable to locate a Java Runtime.' >&2; exit 1")
    assert "there is none" in only_sentence(machine.setup("java"))


def test_without_strace_the_sentence_names_it(machine):
    machine.program("uname", "echo Linux")
    assert "apt-get install strace" in only_sentence(machine.setup("strace"))


def test_without_python_the_sentence_says_how_to_get_it(machine):
    assert "needs Python 3.11 or newer and none is on your PATH" in only_sentence(machine.setup())


def test_an_old_python_is_passed_over(machine):
    machine.program("python3", "exit 1")
    assert "none is on your PATH" in only_sentence(machine.setup())


def test_a_python_named_by_the_user_must_be_new_enough(machine):
    old = machine.program("mine", "exit 1")
    assert f"PYTHON={old} is not a Python 3.11 or newer" in only_sentence(machine.setup(PYTHON=str(old)))


def test_a_python_without_venv_is_named(machine):
    machine.program("python3.11", "case $2 in *ensurepip*) exit 1 ;; esac")
    assert "python3.11 has no venv module" in only_sentence(machine.setup())


def test_without_a_network_the_sentence_says_so(machine):
    # The words are those of the real pip; with a target it counts nothing as installed.
    machine.fake_python(pip=f'exec {sys.executable} "$@"')
    unreachable = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0", "PIP_NO_CACHE_DIR": "1"}
    unreachable |= {"PIP_TARGET": str(machine.checkout / "target"), "PIP_CONFIG_FILE": os.devnull}
    assert "package index cannot be reached: check the network" in only_sentence(machine.setup(**unreachable))
    assert not (machine.checkout / ".venv" / "setup-stamp").exists()


def test_a_package_that_differs_from_its_hash_is_not_trusted(machine):
    machine.fake_python(pip="echo 'ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.'; exit 1")
    assert "differs from its hash" in only_sentence(machine.setup())


def test_any_other_failure_of_pip_is_kept_in_a_file(machine):
    machine.fake_python(pip="echo 'ERROR: no space left on device'; exit 1")
    assert "the reason is at the end of .venv/setup.log" in only_sentence(machine.setup())
    assert "no space left" in (machine.checkout / ".venv" / "setup.log").read_text()


def test_a_second_set_up_installs_nothing_and_a_changed_lock_installs_again(machine):
    machine.fake_python(pip="true", headrace=PREPARED)
    machine.program("java", JAVA_17)
    assert machine.setup("java").returncode == 0
    installed = machine.calls()
    assert [call for call in installed if "lock.txt" in call and "--require-hashes" in call]
    assert (machine.setup("java").stdout, machine.calls()) == ("", installed)
    with (machine.checkout / "requirements" / "lock.txt").open("a") as lock:
        lock.write("# changed\n")
    assert machine.setup("java").returncode == 0
    assert machine.calls() == installed * 2


def test_spark_is_prepared_when_java_is_there_and_what_fails_of_it_stops_nothing(machine):
    machine.program("java", JAVA_17)
    machine.fake_python(pip="true", headrace="echo no room; exit 1")
    assert "running Spark once" not in machine.setup().stdout
    answer = machine.setup("java")
    assert (answer.returncode, "keeps its usual start" in answer.stderr) == (0, True)
    assert "no room" in (machine.checkout / ".venv" / "setup.log").read_text()
    machine.fake_python(pip="true", headrace=PREPARED)
    assert "running Spark once" in machine.setup("java").stdout
    assert machine.setup("java").stdout == ""


def test_on_debian_as_root_a_missing_package_is_installed(machine):
    machine.fake_python(pip="true")
    java = machine.program("spare/java", JAVA_17)
    machine.program("id", "echo 0")
    machine.program("apt-get", f'echo "$@" >> {machine.path}/apt; ln -s {java} {machine.path}/java')
    answer = machine.setup("java")
    assert answer.returncode == 0, answer.stderr
    assert "openjdk-17-jre-headless" in (machine.path / "apt").read_text()
    assert "installing the system package openjdk-17-jre-headless" in answer.stdout


def test_on_debian_as_root_a_package_that_cannot_be_had_ends_in_the_same_sentence(machine):
    machine.program("id", "echo 0")
    machine.program("apt-get", "exit 100")
    assert "there is none" in only_sentence(machine.setup("java"))
