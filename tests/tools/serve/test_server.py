"""The whole server: a process of its own, HTTP over loopback, a real judge on a CPU."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from evaluator.evaluation import Evaluation
from evaluator.hardware.device_lock import device_lock
from tests.command import command, refused
from tests.evaluator.processes import descendants, is_running, still_running
from tests.exploits.corpus import CORPUS
from tests.exploits.sources import module
from tests.tools.serve.server_at_hand import JUDGED, PATIENCE_S, ServerAtHand, server, suite_in
from tools.serve.reward_client import LostError, RefusedError

pytestmark = pytest.mark.thorough

PROBLEM = "level1_1_matmul"
ROOM = 8
RIGHT = module("return torch.matmul(a, b)")
WRONG = module("return torch.matmul(a, b) * torch.nan")
BROKEN = module(
    "return lib.f(a, b)",
    head="from torch.utils.cpp_extension import load_inline\n"
    "lib = load_inline('lib', 'torch::Tensor f(torch::Tensor a) { return b; }', functions=['f'])",
)
HOSTILE = [
    exploit.source
    for exploit in CORPUS
    if exploit.name in ("verdict on stdout", "arithmetic patched")
]
BRIEF = HOSTILE[0]
"""Judged at once, but not without the device."""
MIXED = [WRONG, BRIEF, RIGHT, BROKEN, HOSTILE[1], "\0"]
STATUSES = ["incorrect", "runtime_error", "correct", "build_error", "incorrect", "runtime_error"]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return suite_in(tmp_path_factory.mktemp("suite"))


@pytest.fixture(scope="module")
def running(suite: Path) -> Iterator[ServerAtHand]:
    with server(suite, "--queue", str(ROOM), "--body-mib", "1") as found:
        yield found


@pytest.fixture(scope="module")
def answered(running: ServerAtHand) -> list[dict[str, Any]]:
    """The evaluations of `MIXED`, posted in one batch."""
    answers = list(running.client.evaluate([(PROBLEM, source) for source in MIXED]))
    assert sorted(answer.index for answer in answers) == list(range(len(MIXED)))
    assert not [answer.error for answer in answers if answer.error]
    found = {answer.index: answer.evaluation for answer in answers}
    return [found[index] or {} for index in range(len(MIXED))]


@contextmanager
def posted(
    running: ServerAtHand, body: Any, path: str = "/evaluations", **headers: str
) -> Iterator[http.client.HTTPResponse]:
    """The response; the connection is closed at the end of the block."""
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE_S)
    with closing(connection):
        sent = {"Authorization": f"Bearer {running.token}"} | headers
        connection.request("POST", path, body, sent)
        yield connection.getresponse()


def status_of(running: ServerAtHand, body: Any, path: str = "/evaluations") -> int:
    with posted(running, body, path) as response:
        return response.status


def batch(*candidates: tuple[str, str]) -> bytes:
    told = [{"problem": problem, "source": source} for problem, source in candidates]
    return json.dumps({"candidates": told}).encode()


def memory_mib(running: ServerAtHand, name: str) -> int:
    text = Path(f"/proc/{running.process.pid}/status").read_text()
    return int(text.partition(f"{name}:")[2].split()[0]) // 1024


@contextmanager
def nothing_finishes(running: ServerAtHand) -> Iterator[None]:
    """What is under way waits for the device, which another process of ours holds."""
    running.once(lambda health: health["under_way"] == health["waiting"] == 0)
    with device_lock("cpu"):
        yield


def test_each_candidate_gets_its_own_verdict(answered: list[dict[str, Any]]) -> None:
    assert [each["status"] for each in answered] == STATUSES
    for each in answered:
        read = Evaluation.model_validate(each)
        assert json.loads(read.model_dump_json()) == each
        json.dumps(each, allow_nan=False)


def test_the_verdicts_are_those_of_check(
    answered: list[dict[str, Any]], suite: Path, tmp_path: Path
) -> None:
    for index, source in enumerate(MIXED):
        (tmp_path / f"level_1_problem_1_sample_{index}_kernel.py").write_text(source)
    done = command("evaluator.check", tmp_path, "--suite", suite, *JUDGED, "--json")
    checked = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(checked) == len(MIXED), done.stderr
    json.dumps(checked, allow_nan=False)
    for ours, theirs in zip(answered, checked, strict=True):
        for name in ("status", "reason", "weights", "isolation", "device"):
            assert ours[name] == theirs[name]
        assert (ours["timing"] is None) == (theirs["timing"] is None)
        assert set(ours) == set(theirs) - {"kernel", "problem", "judged_with"}


@pytest.mark.parametrize("path", ["/evaluations", "/health", "/nothing"])
@pytest.mark.parametrize("header", ["", "Bearer", "Bearer wrong", "Basic {}", "{}", "Bearer {}x"])
def test_nothing_without_the_token(running: ServerAtHand, path: str, header: str) -> None:
    given = header.format(running.token)
    with posted(running, batch((PROBLEM, RIGHT)), path, Authorization=given) as response:
        assert response.status == 401
        assert set(json.loads(response.read())) == {"error"}
    assert running.client.health()["waiting"] == 0


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "JSON"),
        (b"\xff\xfe", "JSON"),
        (b"[" * 80, "JSON"),
        (b"[]", "object"),
        (b"{}", "candidates"),
        (b'{"candidates": []}', "candidates"),
        (b'{"candidates": [3]}', "candidates.0"),
        (b'{"candidates": [{"problem": "x", "source": null}]}', "candidates.0.source"),
        (b'{"candidates": [{"problem": "x", "source": "\\ud800"}]}', "JSON"),
        (b'{"candidates": [], "device": "cuda:7"}', ""),
        (batch((PROBLEM, RIGHT), ("no such problem", "")), "candidates.1: no problem 'no such"),
        (batch(("x\n" * 50, RIGHT)), "candidates.0: no problem"),
        (batch(("x" * 100_000, RIGHT)), "candidates.0.problem"),
        (batch(("~nobody/level1/1_matmul.py", RIGHT)), "no problem '~nobody/level1/1_matmul.py'"),
        (batch((str(Path(__file__).parents[3] / "problems/level1/1_swish.py"), "")), "no problem"),
    ],
)
def test_what_is_no_request_is_refused_in_one_line(
    running: ServerAtHand, body: bytes, said: str
) -> None:
    before = running.client.health()
    with posted(running, body) as response:
        text = response.read().decode()
    assert response.status == 400 and text.count("\n") == 1 and len(text) < 500
    assert said in json.loads(text)["error"]
    assert running.client.health() == before


def test_what_is_no_http_does_not_disturb(running: ServerAtHand) -> None:
    for words in (b"\0" * 100, b"GET\r\n\r\n", b"POST /evaluations HTTP/1.1\r\nContent-Length: x"):
        with socket.create_connection(("127.0.0.1", running.port)) as client:
            client.sendall(words)
            client.shutdown(socket.SHUT_WR)
            assert b"Traceback" not in client.recv(10_000)
    assert running.client.health()["waiting"] == 0


def test_a_packed_body_is_no_json(running: ServerAtHand) -> None:
    for packed, coding in ((gzip.compress(batch((PROBLEM, RIGHT))), "gzip"), (b"x", "gzip, br")):
        with posted(running, packed, **{"Content-Encoding": coding}) as response:
            assert response.status == 400
            assert "JSON" in json.loads(response.read())["error"]


def test_the_token_is_not_recorded_with_what_is_no_http(suite: Path) -> None:
    with server(suite) as noted:
        words = f"GET /health HTTP/1.1\r\nAuthorization: Bearer {noted.token}\0\r\n\r\n"
        with socket.create_connection(("127.0.0.1", noted.port)) as client:
            client.sendall(words.encode())
            assert client.recv(10_000).split()[1] == b"400"
        noted.process.terminate()
        assert noted.process.wait(PATIENCE_S) == 0
        assert noted.process.stderr is not None
        recorded = noted.process.stderr.read()
    assert noted.token not in recorded
    assert recorded.count("\n") == 1 and "127.0.0.1" in recorded


def test_other_paths_and_methods(running: ServerAtHand) -> None:
    assert status_of(running, b"", "/nothing") == 404
    assert status_of(running, b"", "/health") == 405


def test_a_large_body_is_refused(running: ServerAtHand) -> None:
    large = batch((PROBLEM, "#" * 2**20))
    assert status_of(running, large) == 413
    chunks = [large[start : start + 2**16] for start in range(0, len(large), 2**16)]
    assert status_of(running, iter(chunks)) == 413
    with pytest.raises(RefusedError, match=f"at most {ROOM} may wait") as error:
        list(running.client.evaluate([(PROBLEM, RIGHT)] * (ROOM + 1)))
    assert error.value.status == 413


def test_what_costs_more_than_its_size_is_not_parsed(running: ServerAtHand) -> None:
    before = memory_mib(running, "VmHWM")
    for part in (b"3,", b"{},", b'"x":0,', b'{"problem":"","source":""},'):
        for start in (b'{"candidates":[', b'{"candidates":[{"problem":[', b'{"x":[', b"[", b"{"):
            assert status_of(running, start + part * (1_000_000 // len(part))) == 413
    assert memory_mib(running, "VmHWM") < before + 50


def test_a_body_is_forgotten_while_its_candidate_waits(suite: Path) -> None:
    padded = batch((PROBLEM, BRIEF)) + b" " * (15 * 2**20)
    with server(suite) as other, nothing_finishes(other), ExitStack() as stack:
        stack.enter_context(posted(other, padded))
        before = memory_mib(other, "VmRSS")
        for _ in range(10):
            stack.enter_context(posted(other, padded))
        assert memory_mib(other, "VmRSS") < before + 75


def test_a_body_is_asked_for_where_it_may_be_taken(running: ServerAtHand) -> None:
    for token, length, expected, status in (
        ("wrong", 20, "100-continue", b"401"),
        ("wrong", 20, "magic", b"401"),
        (running.token, 2**30, "100-continue", b"413"),
        (running.token, 20, "100-continue", b"100"),
        # So many are in memory at a time.
        (running.token, 2**20, "100-continue", b"100"),
    ):
        head = (
            f"POST /evaluations HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n"
            f"Authorization: Bearer {token}\r\nExpect: {expected}\r\n\r\n"
        )
        with ExitStack() as stack:
            for each in [status] if length != 2**20 else [status] * 8 + [b"429"]:
                address = ("127.0.0.1", running.port)
                client = stack.enter_context(socket.create_connection(address, PATIENCE_S))
                client.sendall(head.encode())
                assert client.recv(10_000).split()[1] == each


def test_a_batch_that_does_not_fit_is_refused_whole(running: ServerAtHand) -> None:
    full = batch(*[(PROBLEM, BRIEF)] * ROOM)
    with nothing_finishes(running), posted(running, full) as first:
        assert first.status == 200
        running.once(lambda health: health["waiting"] == ROOM - 1)
        with pytest.raises(RefusedError) as error:
            list(running.client.evaluate([(PROBLEM, RIGHT)] * 2))
        assert error.value.status == 429 and (error.value.retry_after_s or 0) >= 1
        assert running.client.health()["waiting"] == ROOM - 1


def test_a_client_that_hangs_up(running: ServerAtHand) -> None:
    with nothing_finishes(running):
        before = running.client.health()
        with posted(running, batch(*[(PROBLEM, BRIEF)] * 5)):
            running.once(lambda health: health["waiting"] == 4)
        running.once(lambda health: health["waiting"] == 0 and health["under_way"] == 1)
    after = running.once(lambda health: health["under_way"] == 0)
    assert after["answered"] == before["answered"] + 1


def test_stopping_in_the_middle_leaves_nothing_behind(suite: Path) -> None:
    shared = set(Path("/dev/shm").iterdir())
    with server(suite) as stopped, ExitStack() as stack:
        with nothing_finishes(stopped):
            response = stack.enter_context(posted(stopped, batch(*[(PROBLEM, RIGHT)] * 3)))
            stopped.once(lambda health: health["waiting"] == 2)
            below = descendants(stopped.process.pid)
            assert below
            stopped.process.terminate()
            early = [json.loads(response.readline()) for _ in range(2)]
            with pytest.raises(LostError):
                stopped.client.health()
        last = json.loads(response.readline())
        assert [each["index"] for each in early] == [1, 2]
        assert all("stopping" in each["error"] for each in early)
        assert (last["index"], last["evaluation"]["status"]) == (0, "correct")
        assert response.read() == b""
        assert stopped.process.wait(PATIENCE_S) == 0
        assert stopped.process.stderr is not None
        assert "Traceback" not in stopped.process.stderr.read()
    assert not still_running(below)
    assert set(Path("/dev/shm").iterdir()) <= shared


def test_it_ends_where_what_is_under_way_does_not(suite: Path) -> None:
    one = batch((PROBLEM, RIGHT))
    with (
        server(suite, "--grace", "0.1") as stopped,
        nothing_finishes(stopped),
        posted(stopped, one) as response,
    ):
        stopped.once(lambda health: health["under_way"] == 1)
        below = descendants(stopped.process.pid)
        stopped.process.terminate()
        assert "stopping" in json.loads(response.readline())["error"]
        assert stopped.process.wait(PATIENCE_S) == 1
        assert not still_running(below)
        assert not is_running(stopped.process.pid)


def test_mistakes_are_one_line(running: ServerAtHand, tmp_path: Path) -> None:
    short = tmp_path / "token"
    short.write_text("short")
    assert "--token-file" in refused("tools.serve", "--token-file", short)
    assert "no such suite" in refused("tools.serve", "--suite", tmp_path / "nothing")
    assert f"--port {running.port}" in refused("tools.serve", "--port", running.port)
