"""The README's code runs, its two commands are one line each, and CI runs exactly its test command."""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
COMMANDS = [block.strip() for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)]


def test_the_code_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert "kernel" in capsys.readouterr().out


def test_the_two_commands_are_one_line_each_and_can_be_run():
    assert COMMANDS == ["./tutorial", "./test"]
    assert all(os.access(ROOT / command, os.X_OK) for command in COMMANDS)


def test_ci_makes_a_fresh_environment_and_runs_the_test_command():
    lines = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    assert lines[-1] == "exec ./test" and "rm -rf .venv" in lines
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_links_and_pictures_are_there():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
