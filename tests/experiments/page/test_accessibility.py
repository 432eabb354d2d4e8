"""No serious or critical finding of axe, in either theme."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from tests.experiments.page.browser import opened

VIEWS = ("", "#turns", "#relay-by-hand-cpu/level1_18_depthwise_conv1d/1")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_serious(browser: Browser, relay: Path, view: str, scheme: str) -> None:
    with opened(browser, relay, view, color_scheme=scheme, bypass_csp=True) as seen:
        seen.page.wait_for_timeout(500)
        for summary in seen.page.locator("summary:visible").all():
            summary.click()
        found = Axe().run(seen.page).response["violations"]
        serious = [
            (each["id"], node["html"][:200], node["failureSummary"])
            for each in found
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"]
        ]
        assert serious == []
