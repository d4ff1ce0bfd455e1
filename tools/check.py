"""``./test``: linters, type checks and all tests, in an environment that it makes first.

``./test --lint`` stops after the linters and type checks; any other arguments go to pytest, which
then runs alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from tools.environment import ROOT, browser, environment

LINTERS = (("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",))


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs what the command line asks for; the exit code says whether all passed."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    python = str(environment("test"))
    failed = []
    if not given or given == ["--lint"]:
        failed = [" ".join(lint) for lint in LINTERS if _module(python, lint)]
    if given != ["--lint"]:
        tests = given or ["-n", str(min(os.cpu_count() or 1, 4)), "--dist", "loadfile"]
        if _module(python, ["pytest", *tests], JAXLITE_BROWSER=browser()):
            failed.append("pytest")
    if failed:
        sys.exit(f"Failed: {', '.join(failed)}")


def _module(python: str, command: Sequence[str], **variables: str) -> int:
    print("$", *command, flush=True)
    env = {**os.environ, **variables}
    return subprocess.run([python, "-m", *command], cwd=ROOT, env=env, check=False).returncode
