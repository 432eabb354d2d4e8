"""A real browser, and what it is to be watched for."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Page

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
MISSING = "these tests need Chromium or Chrome; install it, on Debian: apt-get install chromium"


def executable() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@dataclass
class Watched:
    """A page, and what went wrong on it."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def rows(self, table: str) -> list[str]:
        """The text of the rows of a table that are in the document."""
        region = self.page.get_by_role("region", name=table, exact=True)
        return region.locator("tbody tr:not(.spacer)").all_inner_texts()


@contextmanager
def opened(
    browser: Browser, file: Path | str, hash_: str = "", **context: object
) -> Iterator[Watched]:
    """The page of a file, or of a URL. No complaint of the browser is let pass."""
    made = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **context})  # type: ignore[arg-type]
    watched = Watched(made.new_page())
    watched.page.set_default_timeout(15_000)
    watched.page.on("console", lambda message: watched.complaints.append(message.text))
    watched.page.on("pageerror", lambda error: watched.complaints.append(str(error)))
    watched.page.on("request", lambda request: watched.requests.append(request.url))
    address = file.as_uri() if isinstance(file, Path) else file
    try:
        watched.page.goto(address + hash_)
        watched.page.locator("main > section:not([hidden]) h1").first.wait_for()
        yield watched
        assert not watched.complaints, watched.complaints
    finally:
        made.close()
