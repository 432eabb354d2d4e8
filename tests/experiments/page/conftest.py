from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.experiments.page.browser import FLAGS, MISSING, executable
from tests.experiments.page.made_pages import page_of

RECORDINGS = Path(__file__).parents[3] / "experiments" / "recordings"


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    path = executable()
    if path is None:
        pytest.fail(MISSING, pytrace=False)
    # As long as actions may take: other tests may have both cores.
    expect.set_options(timeout=15_000)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield chromium
        chromium.close()


@pytest.fixture(scope="package")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded study."""
    archive = RECORDINGS / "profile-worth-cpu.tar.xz"
    return page_of(tmp_path_factory.mktemp("page") / "study.html", archive)


@pytest.fixture(scope="package")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two recorded runs, of which one kept its kernels."""
    folders = [RECORDINGS / f"{name}-tuner-cpu.tar.xz" for name in ("refine", "sample")]
    return page_of(tmp_path_factory.mktemp("page") / "runs.html", *folders)


@pytest.fixture(scope="package")
def relay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded run that kept everything."""
    archive = RECORDINGS / "relay-by-hand-cpu.tar.xz"
    return page_of(tmp_path_factory.mktemp("page") / "relay.html", archive)
