"""What the root commands say where they cannot set things up: the command to type, never a skip."""

from __future__ import annotations

import sys

import pytest

from tools import check, environment, tutorial


@pytest.fixture
def bare(monkeypatch):
    """A machine that is not Debian, has no browser, and on which nothing may be run."""

    def refuse(command, env=None):
        raise AssertionError(f"ran {command}")

    monkeypatch.delenv("JAXLITE_BROWSER", raising=False)
    monkeypatch.setattr(environment.shutil, "which", lambda name: None)
    monkeypatch.setattr(environment, "MAC_CHROME", "/nowhere")
    monkeypatch.setattr(environment, "_is_debian", lambda: False)
    monkeypatch.setattr(environment, "_run", refuse)
    return monkeypatch


def test_a_missing_browser_names_the_install_command(bare):
    bare.setattr(sys, "platform", "linux")
    with pytest.raises(SystemExit, match=r"apt-get install .*chromium") as error:
        environment.browser()
    assert "google-chrome-stable" in str(error.value)  # Ubuntu's chromium is a snap


def test_a_chrome_on_the_path_is_used(bare):
    found = {"google-chrome": "/opt/chrome"}
    bare.setattr(environment.shutil, "which", found.get)
    assert environment.browser() == "/opt/chrome"


def test_root_on_debian_installs_it(bare):
    ran = []
    bare.setattr(environment, "_is_debian", lambda: True)
    bare.setattr(environment.os, "geteuid", lambda: 0)
    bare.setattr(environment, "_run", lambda command, env=None: ran.append(command))
    with pytest.raises(SystemExit, match="No Chromium"):
        environment.browser()  # the pretended installation leaves nothing
    assert [c[:2] for c in ran] == [["apt-get", "update"], ["apt-get", "install"]]


def test_others_on_debian_are_told_the_command(bare):
    bare.setattr(environment, "_is_debian", lambda: True)
    bare.setattr(environment.os, "geteuid", lambda: 1000)
    with pytest.raises(SystemExit, match="sudo apt-get install"):
        environment.browser()


def test_an_old_python_is_refused(bare):
    bare.setattr(environment, "OLDEST", (9, 0))
    with pytest.raises(SystemExit, match=r"needs Python 9\.0 or newer"):
        environment.environment("test")


def test_a_missing_venv_module_names_its_package(bare, tmp_path):
    bare.setattr(environment, "VENV", tmp_path / "venv")
    bare.setattr(environment.importlib.util, "find_spec", lambda name: None)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    with pytest.raises(SystemExit, match=rf"python{version}-venv"):
        environment.environment("test")


@pytest.mark.parametrize(
    ("codes", "arguments", "fails"),
    [
        ({}, [], None),
        ({"mypy": 1}, [], "Failed: mypy"),
        ({"pytest": 1}, [], "Failed: pytest"),
        ({"pytest": 1}, ["--lint"], None),
        ({"ruff": 1}, ["tests/core"], None),  # pytest's own arguments: it runs alone
    ],
)
def test_the_test_command_fails_where_a_part_fails(monkeypatch, codes, arguments, fails):
    monkeypatch.setattr(check, "environment", lambda extra: "python")
    monkeypatch.setattr(check, "browser", lambda: "chromium")
    monkeypatch.setattr(check, "_module", lambda python, command, **env: codes.get(command[0], 0))
    if fails is None:
        check.main(arguments)
    else:
        with pytest.raises(SystemExit, match=fails):
            check.main(arguments)


def test_the_tutorial_is_opened_as_a_copy_that_is_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(tutorial, "ROOT", tmp_path)
    copy = tutorial.working_copy()
    assert copy.read_text("utf-8") == tutorial.NOTEBOOK.read_text("utf-8")
    copy.write_text("edited", "utf-8")
    assert tutorial.working_copy().read_text("utf-8") == "edited"
