"""The doctor sees what is wrong with a machine and says what to do."""

import json
import socket
import sys
from pathlib import Path

import pytest

from headrace.cli import commands
from headrace.core.settings import Settings
from headrace.ops import doctor
from tests.support.terminal import run_on_terminal


def fake_java(folder: Path, answer: str, code: int = 0) -> str:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\ncat >&2 <<'EOF'\n{answer}\nEOF\nexit {code}\n")
    program.chmod(0o755)
    return str(folder)


def test_a_java_on_the_path_is_found_with_its_version(tmp_path):
    fake_java(tmp_path, 'openjdk version "21.0.4" 2024-07-16')
    check = doctor.check_java({"PATH": str(tmp_path / "bin")})
    assert (check.status, check.found) == ("ok", f"Java 21.0.4 at {tmp_path}/bin/java")


def test_java_home_wins_over_the_path_as_it_does_for_spark(tmp_path):
    fake_java(tmp_path / "new", 'openjdk version "17" 2021-09-14')
    old = fake_java(tmp_path / "old", 'java version "1.8.0_392"')
    check = doctor.check_java({"PATH": str(tmp_path / "new" / "bin"), "JAVA_HOME": old})
    assert check.status == "red"
    assert "Java 1.8.0_392" in check.found
    assert "set JAVA_HOME" in check.remedy


@pytest.mark.parametrize("answer", ['openjdk version "11.0.21" 2023-10-17', 'java version "1.8.0_392"', 'openjdk version "16.0.2"'])
def test_a_java_that_is_too_old_is_red(tmp_path, answer):
    fake_java(tmp_path, answer)
    check = doctor.check_java({"PATH": str(tmp_path / "bin")})
    assert check.status == "red"
    assert "17 or newer" in check.remedy


def test_no_java_at_all_is_red_with_the_line_that_installs_it(tmp_path):
    check = doctor.check_java({"PATH": str(tmp_path)})
    assert check.status == "red"
    assert "apt-get install openjdk-17-jre-headless" in check.remedy


def test_a_java_home_that_is_gone_is_red(tmp_path):
    check = doctor.check_java({"JAVA_HOME": str(tmp_path / "gone")})
    assert check.status == "red"
    assert "does not start" in check.found


def test_a_stub_that_is_no_java_is_red(tmp_path):
    fake_java(tmp_path, "No Java runtime present, requesting install.", code=1)
    assert doctor.check_java({"PATH": str(tmp_path / "bin")}).status == "red"


def test_an_old_python_is_red():
    assert doctor.check_python((3, 10, 9)).status == "red"
    assert doctor.check_python().status == "ok"


def test_too_little_memory_for_the_driver_is_red_and_says_how_much_is_missing():
    check = doctor.check_memory(Settings(driver_memory="2g"), limit=1 << 30)
    assert check.status == "red"
    assert "free 1.5 GiB" in check.remedy
    assert doctor.check_memory(Settings(driver_memory="512m"), limit=1 << 30).status == "ok"


def test_this_process_has_some_memory():
    assert doctor.memory_limit() > 0


def test_the_disk_is_measured_where_the_home_will_be_and_nothing_is_left_there(tmp_path):
    check = doctor.check_disk(tmp_path / "not" / "yet" / "there")
    assert check.status in ("ok", "warn")
    assert f"free at {tmp_path}, fsync" in check.found
    assert list(tmp_path.iterdir()) == []


def test_a_home_that_cannot_be_written_is_red():
    check = doctor.check_disk(Path("/proc/headrace"))
    assert check.status == "red"
    assert "HEADRACE_HOME" in check.remedy


def test_a_host_name_without_an_address_is_red(monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "no-such-host.invalid")
    check = doctor.check_network()
    assert check.status == "red"
    assert "SPARK_LOCAL_IP" in check.remedy


def test_a_slip_in_the_settings_is_red_with_its_hint(tmp_path, monkeypatch):
    (tmp_path / "headrace.toml").write_text('mastr = "local[1]"')
    monkeypatch.chdir(tmp_path)
    _, check = doctor.check_settings()
    assert (check.status, check.remedy) == ("red", "did you mean master?")
    assert check.found.endswith("headrace.toml, line 1)")


def test_a_slow_start_is_a_warning_until_it_is_prepared(tmp_path):
    archive = tmp_path / "spark.jsa"
    assert doctor.check_start(archive).status == "warn"
    assert "headrace prepare" in doctor.check_start(archive).remedy
    archive.touch()
    assert doctor.check_start(archive).status == "ok"


def test_the_command_prints_one_line_a_check_and_ends_with_1_when_one_is_red(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    assert commands.execute(["doctor", "--no-spark"]) == 1
    checks = {line["check"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
    assert list(checks) == ["settings", "python", "java", "ports", "memory", "disk", "start"]
    assert checks["java"]["status"] == "red"
    assert checks["java"]["remedy"]


def test_on_a_terminal_the_checks_are_a_table(tmp_path):
    environment = {"HEADRACE_HOME": str(tmp_path), "JAVA_HOME": fake_java(tmp_path, 'openjdk version "17.0.1"'), "NO_COLOR": "1"}
    code, shown = run_on_terminal([sys.executable, "-m", "headrace", "doctor", "--no-spark"], environment=environment)
    assert code == 0, shown
    assert "java" in shown
    assert "fsync" in shown
    assert "{" not in shown
