"""Turns, one by one: links, keys, diffs, and what was not kept."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.experiments.page.browser import Watched, opened

RELAY = "#relay-by-hand-cpu/level1_18_depthwise_conv1d"


def heading(seen: Watched, text: str) -> None:
    expect(seen.page.locator(".detail h1")).to_contain_text(text)


def test_a_link_opens_its_turn(browser: Browser, relay: Path) -> None:
    with opened(browser, relay, f"{RELAY}/1") as seen:
        heading(seen, "Turn 1 correct")
        expect(seen.page.locator("tr.current")).to_contain_text("turn 1")
        expect(seen.page.locator(".outcome")).to_have_text("2.17x [2.11, 2.23] over eager, faster")
        expect(seen.page.locator(".detail")).to_contain_text("Profile: memory_bandwidth")
        expect(seen.page).to_have_title("level1_18_depthwise_conv1d, turn 1 - relay-by-hand-cpu")


@pytest.mark.parametrize("hash_", ["#no/such/turn", "#%E0%A4%A"])
def test_a_link_to_nowhere_opens_the_overview(browser: Browser, relay: Path, hash_: str) -> None:
    with opened(browser, relay, hash_) as seen:
        expect(seen.page.locator("#overview")).to_be_visible()


def test_a_diff_shows_what_changed(browser: Browser, relay: Path) -> None:
    with opened(browser, relay, f"{RELAY}/1") as seen:
        code = seen.page.get_by_role("region", name="What changed in the kernel")
        expect(code.locator("tr.gone").first).to_contain_text("# plan: threads over rows")
        expect(code.locator("tr.come").first).to_contain_text("# plan: one AVX-512 load")
        expect(code.locator("tr.come mark", has_text="_registers")).to_be_visible()
        before = code.locator("tr.same").count()
        code.get_by_role("button", name="12 unchanged lines").click()
        expect(code.locator("tr.same")).to_have_count(before + 12)


def test_keys_lead_through_turns_and_problems(browser: Browser, relay: Path) -> None:
    with opened(browser, relay, "#turns") as seen:
        press = seen.page.keyboard.press
        press("j")
        press("j")
        press("Enter")
        heading(seen, "Turn 1")
        press("j")
        heading(seen, "Turn 2")
        press("ArrowRight")
        heading(seen, "Turn 3")
        press("j")
        heading(seen, "Turn 3")
        press("k")
        press("ArrowLeft")
        heading(seen, "Turn 1")
        press("d")
        expect(seen.page.get_by_role("region", name="Kernel", exact=True)).to_be_visible()
        press("n")
        expect(seen.page.locator(".path b")).not_to_have_text("level1_18_depthwise_conv1d")
        press("p")
        expect(seen.page.locator(".path b")).to_have_text("level1_18_depthwise_conv1d")
        press("Escape")
        expect(seen.page.locator("#turns")).to_be_visible()
        press("/")
        expect(seen.page.get_by_label("Problem or plan")).to_be_focused()
        press("j")
        expect(seen.page.get_by_label("Problem or plan")).to_have_value("j")
        press("Escape")
        press("?")
        expect(seen.page.get_by_role("dialog")).to_be_visible()
        press("Escape")
        expect(seen.page.get_by_role("dialog")).to_be_hidden()


def test_what_was_not_kept_is_told(browser: Browser, study: Path) -> None:
    with opened(browser, study, "#refine-g%2Be-tuner-s0/level1_2_gelu_tanh/3") as seen:
        for part in ("prompts", "answers", "kernels"):
            expect(seen.page.locator(".detail")).to_contain_text(
                f"This run's {part} are not kept here."
            )


def test_turns_are_filtered(browser: Browser, runs: Path) -> None:
    with opened(browser, runs, "#turns") as seen:
        count = seen.page.locator("#turns [role=status]")
        expect(count).to_have_text("72 of 72")
        assert len(seen.rows("Turns")) < 60, "only rows in sight are in the document"
        seen.page.get_by_label("Problem or plan").fill("softmax")
        expect(count).to_have_text("24 of 72")
        seen.page.get_by_label("Status").select_option("correct")
        seen.page.get_by_label("Run", exact=True).select_option("refine-tuner-cpu")
        seen.page.get_by_label("best kernels only").check()
        expect(count).to_have_text("2 of 72")
        assert [row.split("\t")[0] for row in seen.rows("Turns")] == [
            "level1_4_softmax",
            "level2_7_scaled_masked_softmax",
        ]
