"""Problems that clients send: judged with their words, and kept away from everything else."""

from __future__ import annotations

import os
import platform
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluator.walls.seccomp import NUMBERS, WAKING
from tests.command import refused
from tests.evaluator.processes import command_line, descendants
from tests.exploits.problems import matmul
from tests.exploits.sources import module
from tests.tools.serve.server_at_hand import ServerAtHand, server, suite_in
from tests.waiting import once
from tools.serve.reward_client import Answer, RefusedError

pytestmark = pytest.mark.thorough

OWN = matmul(32)
RIGHT = module("return torch.matmul(a, b)")
WRONG = module("return torch.matmul(a, b) + 1")
HOSTILE = """
import os, signal, socket
from pathlib import Path

def works(attack):
    try:
        attack()
    except OSError:
        return False
    return True

attacks = {
    "read": lambda: Path("@secret").read_text(),
    "listed": lambda: os.listdir("@folder"),
    "written": lambda: Path("@folder/written").write_text("x"),
    "cache": lambda: os.listdir("@cache"),
    "connected": lambda: socket.create_connection(("127.0.0.1", @port), 1),
    "signalled": lambda: os.kill(@pid, 0),
    "memory": lambda: open("/proc/@pid/mem", "rb"),
    "others": lambda: [os.kill(int(n), 0) for n in "@others".split()][0],
}
raise RuntimeError("did: " + ", ".join(name for name, each in attacks.items() if works(each)))
"""
LINGERING = """
import subprocess, sys
for code in ("while True: pass", "import os\\nwhile not os.fork(): pass"):
    subprocess.Popen([sys.executable, "-c", code + "  # lingering"], start_new_session=True)
"""

WAKES = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
refused = [libc.syscall(*call, 18, 0) == -1 and ctypes.get_errno() == 1 for call in @calls]
raise RuntimeError(refused)
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerAtHand]:
    suite = suite_in(tmp_path_factory.mktemp("suite"))
    options = ("--accept-problems", "--keep-problems", "2", "--problem-seconds", "600")
    with server(suite, *options, "--profile") as found:
        yield found


def judged(
    running: ServerAtHand, problem: str, *candidates: str, client: str = "test"
) -> list[Answer]:
    asked = [("mine", each) for each in candidates or (RIGHT,)]
    answers = running.client.evaluate(asked, client=client, problems={"mine": problem})
    return sorted(answers, key=lambda each: each.index)


def status(answer: Answer) -> Any:
    assert answer.evaluation is not None, answer
    return answer.evaluation["status"]


def walled(running: ServerAtHand) -> list[int]:
    """The first process of each judge that is kept."""
    children = Path(f"/proc/{running.process.pid}/task").glob("*/children")
    found = [int(pid) for each in children for pid in each.read_text().split()]
    return sorted(pid for pid in found if "walled_service" in command_line(pid))


def test_it_is_judged_as_the_servers_own(running: ServerAtHand) -> None:
    right, wrong, broken = judged(running, OWN, RIGHT, WRONG, "class ModelNew(")
    assert [status(each) for each in (right, wrong, broken)] == [
        "correct",
        "incorrect",
        "runtime_error",
    ]
    assert right.diagnosis == ""
    assert "elements are wrong" in wrong.diagnosis and "Python" in broken.diagnosis
    assert right.profile is not None and right.profile["summary"] and wrong.profile is None
    walls = {"landlock", "seccomp", "pid_namespace", "judge_out_of_reach"}
    assert walls <= set(right.evaluation["isolation"])
    (named,) = running.client.evaluate([("level1_1_matmul", WRONG)])
    assert "elements are wrong" in named.diagnosis and named.profile is None


def test_a_problem_is_set_up_once_and_few_are_kept(running: ServerAtHand) -> None:
    assert status(*judged(running, OWN)) == "correct"
    before = walled(running)
    assert status(*judged(running, OWN, RIGHT + "# again\n")) == "correct"
    assert walled(running) == before
    # Whoever sends another's file could learn from it, so each client has a judge of its own.
    for client, size in (("one", 32), ("two", 33)):
        assert status(*judged(running, matmul(size), client=client)) == "correct"
        assert walled(running) != before
    once(lambda: len(walled(running)) == 2, why=lambda: str(walled(running)))


def test_it_reaches_nothing(running: ServerAtHand, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    judged(running, OWN)
    marks = {
        "secret": secret,
        "folder": tmp_path,
        "cache": os.environ.get("KERNEL_REFINERY_CACHE") or Path.home() / ".cache",
        "port": running.port,
        "pid": running.process.pid,
        "others": " ".join(map(str, descendants(running.process.pid))),
    }
    hostile = OWN + HOSTILE
    for name, value in marks.items():
        hostile = hostile.replace(f"@{name}", str(value))
    (answer,) = judged(running, hostile)
    assert "RuntimeError('did: ')" in (answer.refused or ""), answer
    assert list(tmp_path.iterdir()) == [secret]


def test_what_it_leaves_behind_stands_still(running: ServerAtHand) -> None:
    judged(running, OWN + LINGERING)
    looks = []
    for _ in range(9):
        below = descendants(running.process.pid)
        left = {pid for pid in below if "lingering" in command_line(pid)}
        states = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in left]
        assert {state for state, *_ in states} <= {"T", "Z"}
        looks.append(left)
    # Of the second, each process forks the next one and ends.
    assert len(looks[0]) >= 2 and all(left == looks[0] for left in looks)


def test_it_cannot_have_itself_woken(running: ServerAtHand) -> None:
    table = NUMBERS[platform.machine()]
    calls = [(table[name], 0) for name in WAKING]
    calls += [(table["prctl"], 1), (table["clone"], int(signal.SIGCONT))]
    (answer,) = judged(running, OWN + WAKES.replace("@calls", str(calls)))
    assert "[True, True, True, True]" in (answer.refused or ""), answer


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("raise ValueError('why')", "why"),
        ("x = bytearray(2**45)", "MemoryError"),
        ("import os\nos._exit(0)", "JudgeDiedError"),
        ("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)", "JudgeDiedError"),
    ],
)
def test_a_problem_that_fails_says_so(running: ServerAtHand, end: str, said: str) -> None:
    (answer,) = judged(running, f"{OWN}\n{end}\n")
    assert said in (answer.refused or answer.error or ""), answer
    (named,) = running.client.evaluate([("level1_1_matmul", RIGHT)])
    assert status(named) == "correct"


def test_a_problem_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    options = ("--accept-problems", "--problem-seconds", "5")
    with server(suite_in(tmp_path), *options) as running:
        (answer,) = judged(running, OWN + "\nwhile True: pass\n")
        assert "took longer than 5 s" in (answer.refused or ""), answer
        assert not walled(running)


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        ("", "problem mine: mine.py defines no Model"),
        ("class Model(", "not valid Python"),
        ("-" * 100_000 + "1", "problem mine"),
        (OWN + "CASES = 3\n", "CASES is no list"),
        (OWN + "CASES = [{'N': 1, 'on': foo}]\n", "CASES can't be read"),
    ],
)
def test_what_is_no_problem_is_refused(running: ServerAtHand, problem: str, said: str) -> None:
    (answer,) = judged(running, problem)
    assert said in (answer.refused or "") and "\n" not in answer.refused


def test_it_must_be_allowed(tmp_path: Path) -> None:
    suite = suite_in(tmp_path)
    with server(suite) as running, pytest.raises(RefusedError, match="--accept-problems") as error:
        judged(running, OWN)
    assert error.value.status == 400
    words = ("tools.serve", "--suite", suite, "--accept-problems", "--require-isolation", "strict")
    assert "--accept-problems" in refused(*words)
