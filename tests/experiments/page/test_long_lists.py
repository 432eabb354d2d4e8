"""Ten thousand turns: only the rows in sight are in the document."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.experiments.made_runs import made_turn, write_run
from tests.experiments.page.browser import opened
from tests.experiments.page.made_pages import page_of

PROBLEMS, CALLS = 100, 100


@pytest.mark.thorough
def test_ten_thousand_turns(browser: Browser, tmp_path: Path) -> None:
    problems = [f"level1_{place}_problem" for place in range(PROBLEMS)]
    turns = [
        made_turn(problem, call, 1.0 + place / 100 + call / 10 if call % 3 else None)
        for place, problem in enumerate(problems)
        for call in range(CALLS)
    ]
    page = page_of(
        tmp_path / "page.html",
        write_run(tmp_path / "run", turns, strategy="refine", budget=CALLS, problems=problems),
    )
    with opened(browser, page, "#turns") as seen:
        expect(seen.page.locator("#turns [role=status]")).to_have_text("10,000 of 10,000")
        table = seen.page.get_by_role("region", name="Turns", exact=True)
        assert 10 < len(seen.rows("Turns")) < 80
        table.evaluate("element => element.scrollTop = element.scrollHeight")
        expect(table.get_by_role("row").last).to_contain_text("turn 99")
        assert 10 < len(seen.rows("Turns")) < 80
        assert table.locator("table").get_attribute("aria-rowcount") == "10001"
        table.get_by_role("button", name="over eager").click()
        expect(table.locator("tbody tr:not(.spacer)").first).to_contain_text("11.")
        seen.page.get_by_label("Problem or plan").fill("level1_42_problem")
        expect(seen.page.locator("#turns [role=status]")).to_have_text("100 of 10,000")
        table.get_by_role("link").nth(3).click()
        expect(seen.page.locator(".path")).to_contain_text("level1_42_problem")
        here = seen.page.get_by_role("region", name="Turns of this problem")
        expect(here.locator("tr.current")).to_be_in_viewport()
        assert len(seen.rows("Turns of this problem")) < 80
        seen.page.get_by_role("link", name="Overview").click()
        assert len(seen.rows("Problems by conditions")) < 80
