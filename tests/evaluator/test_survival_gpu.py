"""Whatever a candidate does to a GPU, the next one is judged as usual, and nothing stays behind."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.evaluation import Backend, Status
from evaluator.executor.local import LocalExecutor
from evaluator.hardware.device_lock import device_lock
from evaluator.hardware.nvml import nvml_handles, nvml_library
from tests.evaluator.judge.test_judge_gpu import CUDA, LARGE
from tests.evaluator.leaks import holdings
from tests.evaluator.made_requests import HONEST, evaluation_request, forward

pytestmark = pytest.mark.gpu

RIGHT = (HONEST, CUDA)
WRONG = {
    forward("x.zero_()\nreturn x"): Status.INTEGRITY,
    CUDA.replace("if (i < n) {", "if (true) { i += 1L << 40;"): Status.RUNTIME_ERROR,
    forward("import os\nos.abort()"): Status.RUNTIME_ERROR,
    forward("return torch.empty(2**40, device=x.device)"): Status.RUNTIME_ERROR,
    forward(
        "KEPT.append(torch.empty(2**32, device=x.device))\nreturn x * 3.0", "KEPT = []\n"
    ): Status.INCORRECT,
}
HANGS = forward("torch.cuda._sleep(10**12)\nreturn x")


def crowd(count: int) -> Iterator[tuple[str, Status]]:
    """Sources and what is to be said of them: one in two is right, one in twenty hangs."""
    wrong = list(WRONG.items())
    for number in range(count):
        if number % 20 == 11:
            yield HANGS, Status.TIMEOUT
        elif number % 2:
            yield wrong[number // 2 % len(wrong)]
        else:
            yield RIGHT[number // 2 % 2], Status.CORRECT


def used_mib() -> int:
    """Of the first device's memory, by whomever."""
    with nvml_library() as nvml:
        assert nvml is not None
        return int(nvml.nvmlDeviceGetMemoryInfo(nvml_handles(nvml)[0]).used) >> 20


@pytest.mark.parametrize("count", [40, pytest.param(500, marks=pytest.mark.slow)])
def test_a_crowd_leaves_nothing_behind(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o755)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with LocalExecutor("cuda:0") as executor:

        def judge(source: str) -> Status:
            # A look at each crash would take longer than all the rest.
            settings = {"device": "cuda:0", "timing_seconds": 0.1, "call_timeout_s": 2.0}
            request = evaluation_request(
                source, LARGE, backend=Backend.CUDA, audit="never", **settings
            )
            return executor.evaluate(request).status

        for source, _ in crowd(20):
            judge(source)
        # The device is given back once nothing of the judge's is in the making any more.
        with device_lock("cuda:0"):
            before, used = holdings(executor.judge_pids["cuda:0"]), used_mib()
        others = Counter[tuple[int, Status, Status]]()
        for number, (source, expected) in enumerate(crowd(count)):
            said = judge(source)
            if said is not expected:
                others[number % 20, expected, said] += 1
        with device_lock("cuda:0"):
            after, used_then = holdings(executor.judge_pids["cuda:0"]), used_mib()
    with capsys.disabled():
        print(
            f"\n{count} candidates\n  before {before}, device {used} MiB\n"
            f"  after  {after}, device {used_then} MiB"
        )
    assert not others, "number in its score, expected, said"
    assert after.processes == before.processes
    assert after.descriptors == before.descriptors
    assert after.folders == before.folders
    assert after.memory_kib < before.memory_kib + 128 * 1024
    assert used_then < used + 64


def all_but(size: int) -> str:
    """So many bytes of the device's memory."""
    return f"torch.empty(torch.cuda.mem_get_info()[0] - {size}, dtype=torch.uint8, device='cuda')"


@pytest.mark.parametrize("left", [2**28, 3 * 2**30])
def test_memory_taken_at_import_is_the_candidates_fault_or_no_fault(left: int) -> None:
    """With little left the judge cannot even lend it a slot for its outputs."""
    said = {"out_of_memory"} if left < 2**30 else {"", "out_of_memory"}
    judged_beside_honest(f"import torch\nKEPT = {all_but(left)}\n{HONEST}", said)


def test_so_is_memory_taken_at_hidden_sizes_alone() -> None:
    source = forward(
        "result = torch.relu(x * self.scale + self.bias) * 2.0\n"
        f"if len(x) == 16000 and not KEPT: KEPT.append({all_but(2**25)})\n"
        "return result",
        "KEPT = []",
    )
    hidden = (LARGE.replace("16384, 4096", "16000, 4096"),)
    judged_beside_honest(source, {"", "out_of_memory"}, hidden)


def test_so_is_memory_taken_in_some_workers() -> None:
    """A candidate is timed in four: the later ones may be what takes it. Where one has taken it,
    the next one may fail by itself."""
    takes = f"KEPT = os.urandom(1)[0] % 2 and {all_but(2**28)}"
    said = {"", "out_of_memory", "import_raised", "forward_raised"}
    judged_beside_honest(f"import os, torch\n{takes}\n{HONEST}", said, seconds=1.0)


def judged_beside_honest(
    source: str, reasons: set[str], hidden: tuple[str, ...] = (), *, seconds: float = 0.1
) -> None:
    """Judge this twice, and each time an honest candidate after it.

    `reasons`: those for which it may be refused; empty where it may be correct. An error of the
    judge is an exception.
    """
    with LocalExecutor("cuda:0") as executor:
        for each in (source, HONEST) * 2:
            said = executor.evaluate(
                evaluation_request(
                    each, LARGE, hidden=hidden, device="cuda:0", timing_seconds=seconds
                )
            )
            assert said.reason in (reasons if each is source else {""}), said.message
