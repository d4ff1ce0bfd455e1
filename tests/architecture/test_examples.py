"""The examples in docstrings give what they say."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((ROOT / "jaxlite").rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    found = [test for test in doctest.DocTestFinder(exclude_empty=True).find(module) if test.examples]
    text = Path(str(module.__file__)).read_text("utf-8")
    written = sum(line.lstrip().startswith(">>> ") for line in text.splitlines())
    assert sum(len(test.examples) for test in found) == written, f"doctest does not see all examples of {name}"
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    report: list[str] = []
    for test in found:
        runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)
