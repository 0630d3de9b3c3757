"""Settings come from the file, the environment and the arguments, and a slip in any of them is named."""

import dataclasses
import logging
import traceback
from datetime import timedelta
from pathlib import Path

import pytest

from headrace.core.errors import SettingsError
from headrace.core.secret import Secret
from headrace.core.settings import Settings, find_file, follow_log_level, load_settings, read_settings

CANARY = "c4n4ry-5e5ame"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Everything:
    """One field of every type a setting may have."""

    text: str = ""
    count: int = 0
    ratio: float = 0.0
    verbose: bool = False
    folder: Path = Path()
    patience: timedelta = timedelta(0)
    password: Secret | None = None


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "deep" / "down").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "down")
    for name in ("HEADRACE_HOME", "HEADRACE_MASTER", "HEADRACE_KAFKA"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def write(project: Path, text: str) -> Path:
    file = project / "headrace.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_without_any_source_the_defaults_hold_and_home_is_in_the_working_directory(project):
    assert load_settings(start=project, environment={}) == Settings(home=Path.cwd() / ".headrace")


def test_the_file_is_found_from_a_folder_below_it(project):
    file = write(project, 'master = "local[3]"')
    assert find_file(Path.cwd()) == file
    assert load_settings(environment={}).master == "local[3]"


def test_the_environment_wins_over_the_file_and_an_argument_over_both(project):
    write(project, 'master = "local[1]"\nlog_level = "error"\ndriver_memory = "2g"')
    settings = load_settings(environment={"HEADRACE_MASTER": "local[2]", "HEADRACE_LOG_LEVEL": "info"}, log_level="debug")
    assert (settings.driver_memory, settings.master, settings.log_level) == ("2g", "local[2]", "debug")


def test_an_argument_of_none_counts_as_not_given(project):
    write(project, 'driver_memory = "3g"')
    assert load_settings(environment={}, driver_memory=None).driver_memory == "3g"


def test_home_is_relative_to_the_file_in_the_file_and_to_the_working_directory_elsewhere(project):
    write(project, "")
    assert load_settings(environment={}).home == project / ".headrace"
    write(project, 'home = "data"')
    assert load_settings(environment={}).home == project / "data"
    assert load_settings(environment={"HEADRACE_HOME": "../mine"}).home == project / "deep" / "mine"
    assert load_settings(environment={}, home=Path("here")).home == Path.cwd() / "here"
    assert load_settings(environment={}, home="/data/./x").home == Path("/data/x")


def test_the_environment_is_the_process_s_own_when_none_is_given(project, monkeypatch):
    monkeypatch.setenv("HEADRACE_MASTER", "local[7]")
    assert load_settings().master == "local[7]"


def test_an_unknown_key_in_the_file_is_refused_with_the_closest_name_and_its_line(project):
    file = write(project, '# a comment\nmaster = "local[1]"\nhoem = "x"\n')
    with pytest.raises(SettingsError) as refusal:
        load_settings(environment={})
    assert refusal.value.fact == "there is no setting hoem"
    assert refusal.value.hint == "did you mean home?"
    assert refusal.value.where == f"{file}, line 3"


@pytest.mark.parametrize("text", ["[headrace]\nmaster = 'x'", "zzz.y = 1"])
def test_a_key_that_resembles_nothing_is_refused_with_the_list_of_settings(project, text):
    write(project, text)
    with pytest.raises(SettingsError, match="there is no setting") as refusal:
        load_settings(environment={})
    assert "home, master, driver_memory" in refusal.value.hint
    assert refusal.value.where.endswith("line 1")


def test_a_misspelt_variable_is_refused_and_a_strange_one_ignored(project):
    with pytest.raises(SettingsError) as refusal:
        load_settings(environment={"HEADRACE_MASTR": "local[1]"})
    assert (refusal.value.hint, refusal.value.where) == ("did you mean HEADRACE_MASTER?", "the environment")
    load_settings(environment={"HEADRACE_IMAGE_VERSION": "7", "HOME": "x"})


def test_an_unknown_argument_is_refused(project):
    with pytest.raises(SettingsError, match="there is no setting memory"):
        load_settings(environment={}, memory="1g")


def test_a_value_of_the_wrong_type_is_refused_with_its_key_and_line(project):
    file = write(project, "\nmaster = 3")
    with pytest.raises(SettingsError) as refusal:
        load_settings(environment={})
    assert refusal.value.fact == "master = 3 is not a text"
    assert refusal.value.hint == "write it in quotes"
    assert refusal.value.where == f"{file}, line 2"


def test_a_value_outside_of_its_choices_is_refused_with_the_choices(project):
    with pytest.raises(SettingsError, match="HEADRACE_LOG_LEVEL = 'loud' is not 'debug' or 'info' or 'warning' or 'error'"):
        load_settings(environment={"HEADRACE_LOG_LEVEL": "loud"})


@pytest.mark.parametrize("cores", ["2", "*"])
def test_a_master_that_tries_tasks_again_is_refused_with_the_one_to_write(cores):
    with pytest.raises(SettingsError, match="lets Spark try a failed task again") as error:
        Settings(master=f"local[{cores}, 3]")
    assert f'write "local[{cores}]"' in str(error.value)
    assert Settings(master=f"local[{cores}]").master


def test_memory_that_the_jvm_would_not_take_is_refused():
    with pytest.raises(SettingsError, match="'lots' is not an amount of memory"):
        Settings(driver_memory="lots")


@pytest.mark.parametrize("text", ["master = ", "= 3", 'a = "open', "a = 1\na = 2"])
def test_a_file_that_is_not_toml_is_refused_by_name(project, text):
    write(project, text)
    with pytest.raises(SettingsError, match=r"headrace\.toml is not TOML: .*at (line|end)"):
        load_settings(environment={})


def test_a_file_that_is_not_text_is_refused(project):
    (project / "headrace.toml").write_bytes(b"a = '\xff'")
    with pytest.raises(SettingsError, match="it is not UTF-8"):
        load_settings(environment={})


def test_every_type_is_read_from_the_file(project):
    file = write(project, 'text="t"\ncount=3\nratio=2\nverbose=true\nfolder="f"\npatience="2s"\npassword="p"')
    expected = Everything(
        text="t", count=3, ratio=2.0, verbose=True, folder=project / "f", patience=timedelta(seconds=2), password=Secret("p")
    )
    assert read_settings(Everything, file=file, environment={}) == expected


def test_every_type_is_read_from_the_environment(project):
    variables = {"TEXT": "t", "COUNT": "3", "RATIO": "0.5", "VERBOSE": "yes", "FOLDER": "f", "PATIENCE": "2s", "PASSWORD": "p"}
    expected = Everything(
        text="t", count=3, ratio=0.5, verbose=True, folder=Path.cwd() / "f", patience=timedelta(seconds=2), password=Secret("p")
    )
    assert read_settings(Everything, environment={f"HEADRACE_{name}": value for name, value in variables.items()}) == expected


def test_every_type_is_read_from_arguments(project):
    arguments = {"count": 3, "folder": Path("f"), "patience": timedelta(seconds=2), "password": Secret("p"), "verbose": False}
    read = read_settings(Everything, environment={}, arguments=arguments)
    assert read == Everything(count=3, folder=Path.cwd() / "f", patience=timedelta(seconds=2), password=Secret("p"))


@pytest.mark.parametrize(("key", "value"), [("count", "x"), ("count", "1.5"), ("ratio", "x"), ("verbose", "maybe"), ("patience", "soon")])
def test_text_that_does_not_fit_the_type_is_refused(key, value):
    with pytest.raises(SettingsError, match=f"HEADRACE_{key.upper()} = '{value}' is not"):
        read_settings(Everything, environment={f"HEADRACE_{key.upper()}": value})


@pytest.mark.parametrize("text", ["count = true", "verbose = 1", "text = 1", "folder = 1", "patience = 5", "count = 1.0", "text = ['a']"])
def test_the_file_is_typed(project, text):
    with pytest.raises(SettingsError, match="is not"):
        read_settings(Everything, file=write(project, text), environment={})


@pytest.mark.parametrize(
    "text",
    [
        f'password = "{CANARY}"\npasword = 1',
        f'password = "{CANARY}"\ncount = "x"',
        f'password = ["{CANARY}"]',
        f'password = "{CANARY}"\nbroken = ',
    ],
)
def test_a_slip_next_to_a_secret_shows_the_slip_and_not_the_secret(project, text, monkeypatch):
    file = write(project, text)
    monkeypatch.setenv("HEADRACE_PASSWORD", CANARY)
    del text
    shown = refusal_with_locals(file)
    assert "SettingsError" in shown
    assert CANARY not in shown


def test_a_slip_in_the_environment_next_to_a_secret_does_not_show_it(project, monkeypatch):
    monkeypatch.setenv("HEADRACE_PASSWORD", CANARY)
    monkeypatch.setenv("HEADRACE_COUNT", "many")
    shown = refusal_with_locals(None)
    assert "'many' is not a whole number" in shown
    assert CANARY not in shown


def refusal_with_locals(file: Path | None) -> str:
    try:
        read_settings(Everything, file=file)
    except SettingsError as error:
        return "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    raise AssertionError("nothing was refused")


def test_the_log_level_decides_what_is_logged() -> None:
    logger = logging.getLogger("headrace.log")
    try:
        follow_log_level(Settings(log_level="debug"))
        assert logger.isEnabledFor(logging.DEBUG)
        follow_log_level(Settings(log_level="error"))
        assert not logger.isEnabledFor(logging.WARNING)
    finally:
        logging.getLogger("headrace").setLevel(logging.NOTSET)
