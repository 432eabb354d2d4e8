"""What a model writes stays text, however hostile."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.agent.made_records import keep, turn
from tests.evaluator.made_evaluations import unbuilt
from tests.experiments.made_runs import write_run
from tests.experiments.page.browser import opened
from tests.experiments.page.made_pages import page_of

ATTACK = (
    "</script></pre><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
    "<svg onload=window.hacked=1><style>body{display:none}</style>"
    "<a href='javascript:window.hacked=1'>x</a>{{ 7 * 7 }} \u2028 \U0001f600 <!-- <script>"
)
NAME = "level1_1_<img src=x onerror=window.hacked=1>"


def hostile_run(folder: Path) -> Path:
    records = [
        turn(0, unbuilt(ATTACK, message=ATTACK), problem=NAME, plan=ATTACK, model_answered=ATTACK),
        turn(
            1,
            problem=NAME,
            plan=ATTACK,
            candidate="decade",
            prompt="p1",
            completion="c1",
            parent="c0ffee",
        ),
    ]
    write_run(folder, records, budget=2, problems=[NAME])
    keep(folder, records[0], kernel=f"# {ATTACK}\n", prompt=ATTACK, answer=ATTACK)
    keep(folder, records[1], kernel=f"#  {ATTACK}\nx = '''{ATTACK}\n#include;\n'''\n")
    return folder


def test_hostile_text_is_shown_and_does_nothing(browser: Browser, tmp_path: Path) -> None:
    page = page_of(tmp_path / "page.html", hostile_run(tmp_path / "run <b>"))
    for hash_ in ("", "#turns", "#run%20%3Cb%3E/" + NAME.replace("<", "%3C") + "/0"):
        with opened(browser, page, hash_) as seen:
            for summary in seen.page.locator("summary:visible").all():
                summary.click()
            body = seen.page.locator("body")
            expect(body).to_contain_text(NAME)
            seen.page.wait_for_timeout(300)
            assert seen.page.evaluate("window.hacked") is None
            assert seen.page.locator("img, svg[onload], a[href^=javascript]").count() == 0
            expect(body).to_be_visible()


def test_every_hostile_text_is_there_letter_by_letter(browser: Browser, tmp_path: Path) -> None:
    page = page_of(tmp_path / "page.html", hostile_run(tmp_path / "run"))
    with opened(browser, page, "#turns") as seen:
        seen.page.keyboard.press("j")
        seen.page.keyboard.press("Enter")
        for part in ("Plan", "Build log", "Prompt", "Answer"):
            if part in ("Prompt", "Answer"):
                seen.page.locator("summary", has_text=part).click()
            region = seen.page.get_by_role("region", name=part, exact=True)
            assert region.text_content() == ATTACK
        seen.page.keyboard.press("j")
        line = seen.page.locator("tr.come td.line").first
        expect(line).to_contain_text("window.hacked")
        assert line.text_content() == f"#  {ATTACK}"


def test_scripts_that_are_not_ours_are_refused(browser: Browser, tmp_path: Path) -> None:
    """Even if a text were put into the page as HTML one day, it would not run."""
    page = page_of(tmp_path / "page.html", hostile_run(tmp_path / "run"))
    text = page.read_text()
    assert "connect-src" not in text.partition("</head>")[0]
    injected = "<script>window.hacked = 1</script><img src='https://example.invalid/x.png'>"
    page.write_text(text.replace("<noscript>", injected + "<noscript>"))
    context = browser.new_context()
    try:
        tab = context.new_page()
        complaints: list[str] = []
        tab.on("console", lambda message: complaints.append(message.text))
        tab.goto(page.as_uri())
        tab.locator("#overview h1").wait_for()
        assert tab.evaluate("window.hacked") is None
        assert any("script-src" in each for each in complaints)
        assert any("img-src" in each for each in complaints)
    finally:
        context.close()
