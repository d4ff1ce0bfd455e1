"""What tests of several folders share: how many examples are drawn, and a Chromium that asks nothing of the network."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

# Tests compile what they test; those of the disk cache switch it on, in folders of their own.
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "0"

# The usual run draws the same programs each time; --hypothesis-profile=thousands draws new ones.
settings.register_profile("sample", max_examples=60, deadline=None, derandomize=True)
settings.register_profile("thousands", max_examples=1000, deadline=None)
settings.load_profile("sample")

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium; where there is none, an error that says how to install it."""
    from playwright.sync_api import sync_playwright

    from tools.environment import browser as find

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=find(), args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def offline(browser: Any) -> Iterator[Any]:
    """Makes pages whose requests to anything but this machine are refused and noted."""
    contexts = []

    def page(**options: Any) -> Any:
        context = browser.new_context(viewport={"width": 1280, "height": 1000}, **options)
        contexts.append(context)
        opened = context.new_page()
        opened.set_default_timeout(60_000)
        opened.refused, opened.problems = [], []
        opened.on("pageerror", lambda error: opened.problems.append(str(error)))

        def route(request: Any) -> None:
            address = request.request.url
            if "127.0.0.1" in address or address.startswith(("data:", "blob:", "file:")):
                request.continue_()
            else:
                opened.refused.append(address)
                request.abort()

        opened.route("**/*", route)
        return opened

    yield page
    for context in contexts:
        context.close()
