"""`headrace systemd`: a unit that systemd reads back as it was meant."""

from __future__ import annotations

import configparser
import sys
from pathlib import Path

from headrace.cli.commands import execute
from headrace.ops.unit import Unit, quoted

APP = 'import headrace as hr\napp = hr.App("shop", home="data")\n'


def parsed(text):
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str
    unit.read_string(text)
    return unit


def test_a_unit_runs_the_app_with_this_interpreter_and_lets_it_finish(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("app.py").write_text(APP)
    assert execute(["systemd", "app.py", "--user", "shop"]) == 0
    unit = parsed(capsys.readouterr().out)
    service = unit["Service"]
    assert service["ExecStart"] == f"{sys.executable} -m headrace run {tmp_path / 'app.py'}"
    assert service["WorkingDirectory"] == str(tmp_path)
    assert service["Environment"] == f"HEADRACE_HOME={tmp_path / 'data'}"
    assert (service["User"], service["Restart"], service["KillMode"]) == ("shop", "on-failure", "mixed")
    assert unit["Install"]["WantedBy"] == "multi-user.target"


def test_a_unit_is_written_to_a_file(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("app.py").write_text(APP)
    assert execute(["systemd", "app.py:shop", "-o", "headrace-shop.service"]) == 0
    assert "systemctl enable --now headrace-shop.service" in capsys.readouterr().err
    service = parsed(Path("headrace-shop.service").read_text())["Service"]
    assert service["ExecStart"].endswith("app.py:shop")
    assert "User" not in service


def test_what_systemd_would_take_for_its_own_is_escaped(tmp_path):
    folder = tmp_path / "100% my $apps"
    folder.mkdir()
    service = parsed(str(Unit("shop", str(folder / "app.py"), folder, Path("/usr/bin/python3"))))["Service"]
    assert service["ExecStart"] == f'/usr/bin/python3 -m headrace run "{tmp_path}/100%% my $$apps/app.py"'
    assert service["WorkingDirectory"] == f"{tmp_path}/100%% my $apps"
    assert service["Environment"] == f'"HEADRACE_HOME={tmp_path}/100%% my $apps"'
    assert quoted('a "b" \\c') == '"a \\"b\\" \\\\c"'
