"""The first view, as a reader uses it."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.experiments.page.browser import opened


def test_a_study_begins_with_its_answers(browser: Browser, study: Path) -> None:
    with opened(browser, study) as seen:
        question = seen.page.get_by_role("heading", level=1)
        expect(question).to_have_text("Is the profile worth its words to the tuner, on a CPU?")
        cards = seen.page.locator(".finding")
        expect(cards).to_have_count(2)
        expect(cards.first).to_contain_text("Can't tell")
        expect(cards.first).to_contain_text("planned")
        expect(cards.first).to_contain_text("x1.01 [0.95, 1.08]")
        expect(seen.page.locator("#overview")).to_contain_text("not a language model")


def test_nothing_is_loaded_from_anywhere(browser: Browser, study: Path) -> None:
    with opened(browser, study) as seen:
        seen.page.locator("#overview .plot .main-svg").first.wait_for()
        assert [url for url in seen.requests if not url.startswith(("data:", "blob:"))] == [
            study.as_uri()
        ]


def test_curves_are_drawn_against_what_is_chosen(browser: Browser, study: Path) -> None:
    with opened(browser, study) as seen:
        plot = seen.page.locator("figure", has_text="same as numbers").first
        expect(plot.locator(".scatterlayer .trace .lines path.js-line")).to_have_count(9)
        expect(plot.locator(".xtitle")).to_have_text("calls a problem")
        options = seen.page.get_by_label("against", exact=True).locator("option").all_inner_texts()
        assert options == ["calls", "tokens", "wall time", "device time"], "no dollars were spent"
        seen.page.get_by_label("against", exact=True).select_option("tokens")
        expect(plot.locator(".xtitle")).to_have_text("tokens a problem")
        seen.page.get_by_role("checkbox", name="refine G+E+placebo:P").uncheck()
        expect(plot.locator(".scatterlayer .trace .lines path.js-line")).to_have_count(6)
        seen.page.get_by_label("Figure", exact=True).select_option("fast_1")
        expect(plot.locator(".ytick").last).to_have_text("100%")
        plot.get_by_text("The same as numbers").click()
        expect(plot.get_by_role("columnheader")).to_have_text(
            ["tokens a problem", "refine G+E", "refine G+E+P"]
        )


def test_problems_are_sorted_and_lead_to_their_best_turn(browser: Browser, study: Path) -> None:
    with opened(browser, study) as seen:
        table = seen.page.get_by_role("region", name="Problems by conditions")
        table.get_by_role("button", name="refine G+E+P", exact=True).click()
        expect(table.locator('th[aria-sort="descending"]')).to_have_text("refine G+E+P")
        first = seen.rows("Problems by conditions")[0]
        assert first.startswith("level1_10_row_moments"), first
        table.get_by_role("button", name="problem").click()
        assert seen.rows("Problems by conditions")[0].startswith("level1_2_gelu_tanh")
        table.get_by_role("link", name="3.64x [3.17, 4.17]").click()
        expect(seen.page.locator(".path")).to_contain_text("level1_2_gelu_tanh in refine-g+e+p-")
        expect(seen.page.locator(".detail h1")).to_contain_text("★")
