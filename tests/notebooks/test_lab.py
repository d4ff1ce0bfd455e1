"""A real JupyterLab in a real Chromium: the tutorial runs, and a click on a node reaches Python."""

from __future__ import annotations

import json
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

TUTORIAL = Path(__file__).parents[2] / "notebooks" / "01_first_steps.ipynb"

pytestmark = [pytest.mark.browser, pytest.mark.long]

ALL_RAN = """() => [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')]
    .every(e => /\\[\\d+\\]/.test(e.textContent))"""


class Lab:
    """A running server with its own settings."""

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token

    def call(self, method: str, what: str, body: Any = None) -> Any:
        """Asks the server's REST interface."""
        request = urllib.request.Request(
            f"{self.url}/api/{what}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def session(self, path: str) -> Callable[[], Any]:
        """Starts the notebook's kernel before the page asks which one to take."""
        body = {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}}
        key = self.call("POST", "sessions", body)["id"]
        return lambda: self.call("GET", f"sessions/{key}")["kernel"]


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def _settings(root: Path, env: dict[str, str]) -> dict[str, str]:
    own = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    folder = root / "settings" / "@jupyterlab" / "apputils-extension"
    folder.mkdir(parents=True)
    quiet = {"fetchNews": "false", "checkForUpdates": False}
    (folder / "notification.jupyterlab-settings").write_text(json.dumps(quiet))
    places = {key: str(root / key) for key in own}
    lab = {"JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTERLAB_WORKSPACES_DIR": "workspaces"}
    return {**env, **places, **{key: str(root / name) for key, name in lab.items()}}


@pytest.fixture
def lab(tmp_path: Path, python_path: dict[str, str]) -> Iterator[Lab]:
    """JupyterLab on a copy of the tutorial."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    shutil.copy(TUTORIAL, folder)
    port, token = _free_port(), secrets.token_hex(16)
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1",
        f"--port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}",
        f"--ServerApp.root_dir={folder}", "--LabApp.extension_manager=readonly",
        "--LabApp.news_url=None",
    ]  # fmt: skip
    log = tmp_path / "lab.log"
    with log.open("wb") as out:
        server = subprocess.Popen(command, env=_settings(tmp_path, python_path), stdout=out, stderr=subprocess.STDOUT)
        running = Lab(f"http://127.0.0.1:{port}", token)
        try:
            _wait_for(running, server, log)
            yield running
        finally:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait(20)


def _wait_for(lab: Lab, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            lab.call("GET", "status")
            return
        except OSError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(log.read_text()[-4000:]) from None
            time.sleep(0.2)


def _open(page: Any, lab: Lab, name: str) -> None:
    """Opens the notebook and waits until the page is attached to its kernel."""
    kernel = lab.session(name)
    page.goto(f"{lab.url}/doc/tree/{name}?token={lab.token}&reset")
    page.wait_for_selector(".jp-NotebookPanel .jp-Cell")
    deadline = time.monotonic() + 60
    while kernel()["connections"] < 1 or kernel()["execution_state"] != "idle":
        assert time.monotonic() < deadline, "the page did not attach to the kernel"
        page.wait_for_timeout(100)


def _menu(page: Any, *names: str) -> None:
    for name in names:
        page.get_by_role("menuitem", name=name, exact=True).click()


def test_a_selected_node_is_known_to_python(lab: Lab, offline: Callable[..., Any]) -> None:
    page = offline()
    page.set_default_timeout(180_000)
    _open(page, lab, TUTORIAL.name)
    page.keyboard.press("Escape")
    _menu(page, "Run", "Run All Cells")
    # Lab draws only the cells in sight: walk to the end, then wait until every prompt has a number.
    page.wait_for_function(ALL_RAN)
    graph = page.locator(".jp-OutputArea [data-testid=jaxlite-graph][data-state=ready]").last
    graph.wait_for()
    node = graph.locator("[data-node]", has_text="dot_general").first
    node.scroll_into_view_if_needed()
    node.click()
    page.wait_for_function("e => e.getAttribute('aria-pressed') === 'true'", arg=node.element_handle())
    assert "x @" in graph.locator(".jx-detail code").first.inner_text()
    assert "Cell In[" in graph.locator(".jx-detail").inner_text()
    last = page.locator(".jp-CodeCell").last
    last.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    last.locator(".jp-OutputArea-output", has_text="dot_general").wait_for()
    assert not page.problems, page.problems


SHOWN = """([text, times]) => [...document.querySelectorAll('.jp-OutputArea-output')]
    .map(e => e.textContent).join().split(text).length > times"""
STOPS = """import jaxlite as jax

@jax.jit
def f(x):
    def body(carry, x):
        jax.debug.breakpoint()
        return carry + x, None
    return jax.lax.scan(body, 0.0, x)[0]

print("sum", float(f(jax.numpy.array([2.5, 4.0]))))"""


def test_a_breakpoint_in_a_compiled_loop_asks_in_the_page(
    lab: Lab, offline: Callable[..., Any], tmp_path: Path
) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(STOPS)])
    nbformat.write(notebook, tmp_path / "notebooks" / "stops.ipynb")
    page = offline()
    page.set_default_timeout(60_000)
    _open(page, lab, "stops.ipynb")
    page.keyboard.press("Escape")
    _menu(page, "Run", "Run All Cells")
    # Each command, and what the outputs show after it, that often.
    answers = [("p carry, x", "Array(2.5,", 1), ("c", "Entering jdb:", 2), ("x", "Array(4.,", 1), ("c", "sum 6.5", 1)]
    for command, shown, times in answers:
        box = page.wait_for_selector(".jp-Stdin-input")
        box.fill(command)
        box.press("Enter")
        box.wait_for_element_state("hidden")  # else the next command might go into it
        page.wait_for_function(SHOWN, arg=[shown, times])
    assert not page.problems, page.problems
