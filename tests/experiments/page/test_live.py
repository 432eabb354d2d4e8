"""The page of a run that goes on: what is new appears, and the reader stays where he was."""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from experiments.page.live import LiveServer
from experiments.page.sources import Sources
from tests.agent.made_records import write_turns
from tests.experiments.made_runs import made_turn, write_run
from tests.experiments.page.browser import opened


@contextmanager
def served(*paths: Path) -> Iterator[LiveServer]:
    with LiveServer(Sources.at(paths)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def a_run(folder: Path, calls: int) -> Path:
    turns = [made_turn("level1_1_p", call, 1.5 + call / 100) for call in range(calls)]
    return write_run(folder, turns, strategy="refine", budget=400, problems=["level1_1_p"])


def test_new_turns_appear_where_one_reads(browser: Browser, tmp_path: Path) -> None:
    run = a_run(tmp_path / "run", 100)
    with served(run) as server, opened(browser, server.url, "#turns") as seen:
        seen.page.evaluate("window.loaded = 1")
        expect(seen.page.locator("#state")).to_have_text("live, turns: 100")
        table = seen.page.get_by_role("region", name="Turns", exact=True)
        table.evaluate("element => element.scrollTop = 1003")
        expect(table).to_contain_text("turn 40")
        write_turns(run, [made_turn("level1_1_p", 100, "wrong"), made_turn("level1_2_q", 0, 3.0)])
        expect(seen.page.locator("#state")).to_have_text("live, turns: 102")
        assert table.evaluate("element => element.scrollTop") == 1003
        table.evaluate("element => element.scrollTop = element.scrollHeight")
        expect(table).to_contain_text("level1_2_q")
        assert seen.page.evaluate("window.loaded") == 1


def test_a_turn_stays_open_while_others_come(browser: Browser, tmp_path: Path) -> None:
    run = a_run(tmp_path / "run", 3)
    with served(run) as server, opened(browser, server.url, "#run/level1_1_p/1") as seen:
        seen.page.locator(".detail h1").evaluate("element => element.dataset.same = 'yes'")
        write_turns(run, [made_turn("level1_1_p", 3, 2.5)])
        here = seen.page.get_by_role("region", name="Turns of this problem")
        expect(here).to_contain_text("turn 3")
        expect(seen.page.locator(".detail h1")).to_have_attribute("data-same", "yes")
        seen.page.keyboard.press("j")
        seen.page.keyboard.press("j")
        expect(seen.page.locator(".detail h1")).to_contain_text("Turn 3 correct ★")


def test_a_turn_is_read_of_its_own_run_when_another_begins(
    browser: Browser, tmp_path: Path
) -> None:
    a_run(tmp_path / "second", 3)
    with served(tmp_path) as server, opened(browser, server.url, "#second/level1_1_p/1") as seen:
        expect(seen.page.locator(".outcome")).to_contain_text("1.51x")
        turns = [made_turn("level1_1_p", call, 9.0) for call in range(3)]
        write_run(tmp_path / "first", turns, strategy="refine", budget=3, problems=["level1_1_p"])
        expect(seen.page.locator("#state")).to_have_text("live, turns: 6")
        seen.page.keyboard.press("j")
        expect(seen.page.locator(".outcome")).to_contain_text("1.52x")


def test_a_broken_run_is_told_and_recovered_from(browser: Browser, tmp_path: Path) -> None:
    run = a_run(tmp_path / "run", 2)
    with (
        served(run) as server,
        pytest.raises(AssertionError, match="503"),
        opened(browser, server.url) as seen,
    ):
        whole = (run / "turns.jsonl").read_text()
        (run / "turns.jsonl").write_text(whole + "nonsense\n")
        expect(seen.page.locator("#state")).to_contain_text("line 3 is not JSON")
        (run / "turns.jsonl").write_text(whole)
        expect(seen.page.locator("#state")).to_have_text("live, turns: 2")


def answer(server: LiveServer, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        found = connection.getresponse()
        found.read()
        return found
    finally:
        connection.close()


def test_only_browsers_of_this_machine_are_answered(tmp_path: Path) -> None:
    with served(a_run(tmp_path / "run", 2)) as server:
        assert server.server_address[0] == "127.0.0.1"
        policy = answer(server, "/").headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert answer(server, "/page").status == 200
        assert answer(server, "/page", Host="evil.example").status == 403
        assert answer(server, "/block?run=run&problem=level1_1_p").status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/turns.jsonl",
        "/../../etc/passwd",
        "/block",
        "/block?run=run&problem=../../etc/passwd",
        "/block?run=../run&problem=level1_1_p",
        "/block?run=&problem=level1_1_p",
    ],
)
def test_nothing_but_the_page_is_served(tmp_path: Path, path: str) -> None:
    with served(a_run(tmp_path / "run", 2)) as server:
        answer(server, "/page")
        assert answer(server, path).status == 404
