"""A real IPython shell with the extension loaded, and a comm that records what a widget sends."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, ClassVar

import comm
import IPython
import pytest
from comm.base_comm import BaseComm
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output


@dataclasses.dataclass
class Shell:
    """Runs cells as a notebook does."""

    ipython: Any

    def run(self, text: str) -> tuple[Any, Any]:
        """The result and what was printed and displayed; the cell must not fail."""
        result, shown = self.attempt(text)
        result.raise_error()
        return result.result, shown

    def attempt(self, text: str) -> tuple[Any, Any]:
        """As ``run``, for cells that may fail."""
        with capture_output() as shown:
            result = self.ipython.run_cell(text, store_history=True)
        return result, shown

    @property
    def names(self) -> dict[str, Any]:
        """The notebook's variables."""
        return self.ipython.user_ns


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[Shell]:
    """A fresh shell, the extension loaded, jaxlite and NumPy imported."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    InteractiveShell.clear_instance()
    plain = "NoColor" if IPython.version_info[0] < 9 else "nocolor"
    ipython = InteractiveShell.instance(colors=plain)
    ipython.history_manager.enabled = False
    ipython.run_line_magic("load_ext", "jaxlite")
    opened = Shell(ipython)
    opened.run("import jaxlite as jax, jaxlite.numpy as jnp, numpy as np")
    yield opened
    ipython.history_manager.end_session()
    InteractiveShell.clear_instance()


class RecordingComm(BaseComm):
    """Keeps the messages that a front end would get."""

    sent: ClassVar[list[tuple[str, dict[str, Any]]]] = []

    def publish_msg(self, msg_type: str, data: Any = None, *rest: Any, **more: Any) -> None:
        RecordingComm.sent.append((msg_type, data or {}))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """The messages that widgets send, in order."""
    monkeypatch.setattr(comm, "create_comm", lambda *a, **k: RecordingComm(*a, **k))
    RecordingComm.sent = []
    return RecordingComm.sent
