"""Judging on this machine, with the judge itself in danger."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evaluator.errors import JudgeDiedError
from evaluator.evaluation import EvaluationRequest, Status
from evaluator.executor.local import LocalExecutor
from evaluator.hardware.device_lock import device_lock
from evaluator.rival import CheckRequest
from tests.evaluator.deep_audit.programs import SLOW_WHEN_WATCHED, program
from tests.evaluator.made_requests import HONEST, SCALE_AND_BIAS, evaluation_request
from tests.evaluator.processes import descendants, descendants_once, still_running
from tests.waiting import once

STAGES: list[str] = []
SLOW = f"import time\ntime.sleep(30)\n{HONEST}"


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    """One of our own: its judge is killed."""
    with LocalExecutor("cpu", stage=STAGES.append) as running:
        yield running


def request(source: str) -> EvaluationRequest:
    return evaluation_request(source, timing_seconds=0.2, import_timeout_s=60.0)


@pytest.mark.parametrize(
    "rival",
    [
        pytest.param("eager", marks=pytest.mark.thorough),
        pytest.param("compile", marks=pytest.mark.slow),
    ],
)
def test_what_a_check_sets_up_serves_the_first_candidate(rival: str, tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    # A worker has no such variable, and could not write there either.
    note = "import os\nif 'KERNEL_REFINERY_CACHE' in os.environ:\n    open({!r}, 'a').write('.')\n"
    counted = note.format(str(diary)) + SCALE_AND_BIAS
    # An audit, which `auto` makes of what seems fast, imports the file as well.
    settings = request("").settings.model_copy(update={"audit": "never"})
    asked = {"problem_id": "test", "reference": counted, "settings": settings}
    problem = CheckRequest.model_validate(asked | {"rival": rival})
    with LocalExecutor("cpu") as early:
        found = early.check(problem)
        imports = diary.read_text()
        candidate = EvaluationRequest(**asked, candidate=request(HONEST).candidate)
        assert early.evaluate(candidate).status is Status.CORRECT
    assert diary.read_text() == imports, "the judge has not imported the file again"
    assert set(found.times_us) == {"eager", *["torch.compile"] * (rival == "compile")}
    assert found.bound_us and found.needed_bytes
    assert {"aten::mul", "aten::add"} <= {kernel.name for kernel in found.longest}
    assert not found.strides
    with LocalExecutor("cpu") as later:
        assert later.check(problem) == found
        assert later.evaluate(candidate).status is Status.CORRECT
    assert diary.read_text() == 2 * imports, "the second judge has set it up once"


def test_outputs_that_do_not_lie_row_by_row_are_known(executor: LocalExecutor) -> None:
    turned = SCALE_AND_BIAS.replace("* 2.0", "* 2.0).mT.contiguous().mT").replace(
        "return ", "return (", 1
    )
    settings = request("").settings
    found = executor.check(CheckRequest(problem_id="turned", reference=turned, settings=settings))
    assert found.strides == ((0, (1, 256)),)


HOLDS = """
from evaluator.hardware.device_lock import device_lock
from evaluator.rival import CheckRequest
with device_lock("cpu"):
    print("held", flush=True)
    input()
"""


def test_waiting_for_a_device_is_shown_at_once_and_booked_apart(
    executor: LocalExecutor, capsys: pytest.CaptureFixture[str]
) -> None:
    command, pipe, told = [sys.executable, "-c", HOLDS], subprocess.PIPE, ""
    with (
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        judged = pool.submit(executor.evaluate, request("raise ValueError"))
        while not told and not judged.done():
            told = capsys.readouterr().err
            time.sleep(0.05)
        assert told == f"waiting for cpu, held by PID {other.pid}, -c\n"
        time.sleep(0.5)
        print(file=other.stdin, flush=True)
        assert judged.result().seconds.waiting >= 0.5


@pytest.mark.thorough
def test_a_turn_ends_the_audit_of_a_second_verdict(executor: LocalExecutor) -> None:
    source = program(head=SLOW_WHEN_WATCHED)
    second = evaluation_request(source, timing_seconds=0.1, audit="always")
    second = second.model_copy(update={"is_second": True})
    (slot,) = executor._slots
    with ThreadPoolExecutor(1) as pool:
        audited = pool.submit(executor.evaluate, second)
        once(lambda: slot.ends or audited.done())
        assert executor.evaluate(request("raise ValueError")).status is Status.RUNTIME_ERROR
        assert not audited.done(), "the turn has not waited for the audit"
        found = audited.result()
    assert found.status is Status.CORRECT and found.timing is not None, found.message
    assert found.audit is not None and found.audit.occasion == "asked" and found.audit.life
    assert [(run.outcome, run.calls) for run in found.audit.sanitizers] == [("clean", 3)] * 2


def test_one_that_is_closed_while_its_judge_starts_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with LocalExecutor("cpu", cache=tmp_path / "cache") as early:
        early.prepare()
        judge = early.judge_pids["cpu"]
        below = descendants_once("evaluator.worker.zygote", judge)
    assert not still_running({judge, *below})
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


@pytest.mark.thorough
def test_a_judge_that_is_killed_takes_its_workers_along_and_is_replaced(
    executor: LocalExecutor,
) -> None:
    STAGES.clear()
    assert executor.evaluate(request(HONEST)).status is Status.CORRECT
    assert STAGES[0] == "starting a judge" and "right in" in " ".join(STAGES[:-1])
    judge = executor.judge_pids["cpu"]
    with device_lock("cpu"):
        waiting = descendants(judge)  # with a spare worker: it will sleep in an import
    seen: set[int] = set()

    def kill() -> None:
        time.sleep(2.0)
        seen.update(descendants(judge))
        os.kill(judge, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(JudgeDiedError, match=r"evaluator\.executor\.judge_server ended \(code -9"):
        executor.evaluate(request(SLOW))
    killer.join()
    assert seen >= waiting
    assert not still_running(seen)
    assert executor.evaluate(request(HONEST)).status is Status.CORRECT
    assert executor.judge_pids["cpu"] != judge
