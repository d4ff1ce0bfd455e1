"""What the root commands need: a virtual environment with jaxlite in it, and a browser.

In: the Python that runs the command, standard library only. Out: the environment's Python, and the
path of a Chromium. What cannot be made here is an error that names the command to type.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
OLDEST = (3, 11)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC_CHROME = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"


def environment(extra: str) -> Path:
    """The Python of ``.venv``, in which jaxlite (editable) has the requirements of ``extra``."""
    if sys.version_info < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        given = sys.version.split()[0]
        sys.exit(f"jaxlite needs Python {wanted} or newer; {sys.executable} is {given}.")
    python = VENV / "bin" / "python"
    stamp = VENV / f"jaxlite-{extra}"
    wanted_stamp = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if python.exists() and stamp.exists() and stamp.read_text() == wanted_stamp:
        return python
    if not python.exists():
        _make_venv()
    print(f"Installing jaxlite[{extra}] into {VENV} ...", flush=True)
    _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
          "--editable", f"{ROOT}[{extra}]"])  # fmt: skip
    stamp.write_text(wanted_stamp)
    return python


def _make_venv() -> None:
    if importlib.util.find_spec("ensurepip") is None:  # Debian and Ubuntu split it off
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        _install_package(f"python{version}-venv", "Python's venv module")
    print(f"Making {VENV} ...", flush=True)
    _run([sys.executable, "-m", "venv", "--clear", str(VENV)])


def browser() -> str:
    """The path of a Chromium or Chrome, installed here where this is Debian and we are root."""
    found = _find_browser()
    if found is None:
        _install_package("chromium", "a Chromium or Chrome on the PATH")
        found = _find_browser()
    if found is None:
        sys.exit("No Chromium or Chrome is on the PATH: install one, then run this again.")
    return found


def _find_browser() -> str | None:
    named = os.environ.get("JAXLITE_BROWSER")
    if named:
        return named
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    return found or (MAC_CHROME if os.path.exists(MAC_CHROME) else None)


def _is_debian() -> bool:
    release = Path("/etc/os-release")
    return release.exists() and "\nID=debian\n" in "\n" + release.read_text()


def _install_package(package: str, what: str) -> None:
    """Installs a Debian package as root; elsewhere exits with the command to type."""
    command = f"apt-get install -y --no-install-recommends {package}"
    if not _is_debian() or os.geteuid() != 0:
        how = {
            "darwin": "brew install --cask chromium",
            "linux": f"sudo apt-get update && sudo {command}",
        }.get(sys.platform, f"install {package}")
        note = ""
        if package == "chromium" and not _is_debian():
            note = "  (On Ubuntu, where chromium is a snap, install google-chrome-stable instead.)"
        sys.exit(f"{what} is needed and missing. Install it with:\n\n    {how}\n{note}")
    print(f"Installing {package} ...", flush=True)
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    _run(["apt-get", "update", "-qq"], quiet)
    _run([*command.split(), "-qq"], quiet)


def _run(command: Sequence[str], env: dict[str, str] | None = None) -> None:
    code = subprocess.run(command, env=env, cwd=ROOT, check=False).returncode
    if code:
        sys.exit(f"`{' '.join(command)}` ended with {code}.")
