"""Each page of docs/ names every module of its layer, and no module that is not there."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# page -> what it is about, under jaxlite/
PAGES = {
    "core.md": ["core/**/*.py"],
    "interpreters.md": ["interpreters/**/*.py"],
    "lax.md": ["lax/**/*.py"],
    "transforms.md": ["transforms/**/*.py"],
    "compiler.md": ["compiler/**/*.py"],
    "backends.md": ["backends/**/*.py"],
    "libraries.md": [
        "*.py", "numpy/*.py", "nn/*.py", "random/*.py", "scipy/**/*.py", "sharding/*.py", "experimental/*.py",
    ],
    "notebook.md": ["inspect/*.py"],
}  # fmt: skip


def modules(page: str) -> list[Path]:
    found = {path for pattern in PAGES[page] for path in (ROOT / "jaxlite").glob(pattern)}
    return sorted(path for path in found if path.name != "__init__.py")


def named(page: str) -> set[str]:
    """The file names in backticks, without their folders."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    return {token.rsplit("/", 1)[-1] for token in re.findall(r"`([\w/*]+\.py)`", text)}


def test_every_module_has_a_page():
    everywhere = {path for page in PAGES for path in modules(page)}
    missing = {p for p in (ROOT / "jaxlite").rglob("*.py") if p.name != "__init__.py"} - everywhere
    assert not missing, f"give {sorted(map(str, missing))} a page in PAGES"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_every_module(page):
    names = named(page)
    missing = [str(p.relative_to(ROOT)) for p in modules(page) if not any(fnmatch.fnmatch(p.name, n) for n in names)]
    assert not missing, f"docs/{page} does not name {missing}"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_only_what_is_there(page):
    files = [p.name for folder in ("jaxlite", "extension") for p in (ROOT / folder).rglob("*.py")]
    gone = [name for name in named(page) if not fnmatch.filter(files, name)]
    assert not gone, f"docs/{page} names {gone}, which are not there"
