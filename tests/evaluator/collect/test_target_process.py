from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import pytest

from evaluator.collect.counters import perf_counters
from evaluator.collect.target.lent_folder import lent_folder
from evaluator.collect.target.target_process import run, run_confined
from evaluator.collect.target.target_request import REQUEST
from evaluator.errors import ProfilerError
from evaluator.hardware.device_lock import LOCKS
from evaluator.judge.bounds import ceilings
from evaluator.judge.bounds.ceilings import measure_ceilings
from tests.evaluator.made_requests import evaluation_request
from tests.evaluator.processes import still_running
from tests.task import task

REFERENCE = task("return x + 1", x="torch.randn(64, 64)")


def request(source: str, folder: Path) -> None:
    """Lay it where the target finds it."""
    made = evaluation_request(source, REFERENCE, threads=1)
    (folder / REQUEST).write_text(made.model_dump_json())


def shell(script: str) -> list[str]:
    return ["sh", "-c", script]


def test_the_last_line_printed_is_the_reason(tmp_path: Path) -> None:
    with pytest.raises(ProfilerError, match="ended with 3: the reason"):
        run(shell("echo first; echo the reason; exit 3"), tmp_path, timeout_s=20)


def test_no_key_reaches_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2")
    assert "hunter2" not in run(["env"], tmp_path, timeout_s=20, whole=True)


def test_nobody_truncates_what_was_printed(tmp_path: Path) -> None:
    """As a candidate could a file that a sanitizer writes to."""
    code = "import os; os.ftruncate(1, 0)"
    script = shell(f"echo finding; {sys.executable} -c '{code}'")
    assert "finding" in run(script, tmp_path, timeout_s=20, may_fail=True)


def test_children_die_with_the_time_out(tmp_path: Path) -> None:
    with pytest.raises(ProfilerError, match=r"longer than 0.5 s"):
        run(shell("sleep 300 & echo $! > child; wait"), tmp_path, timeout_s=0.5)
    child = int((tmp_path / "child").read_text())
    assert not still_running([child])


@pytest.mark.thorough
def test_a_confined_candidate_reaches_neither_homes_nor_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2")
    source = (
        "import os, torch\nfrom pathlib import Path\n"
        "assert 'SOME_API_KEY' not in os.environ\n"
        "for place in (Path('/etc'), Path('/usr'), Path('/')):\n"
        "    try:\n        (place / 'refinery-was-here').write_text('x')\n"
        "    except OSError:\n        pass\n"
        "    else:\n        raise SystemExit(f'{place} can be written')\n"
        "try:\n    os.chmod(os.__file__, 0o644)\n"
        "except OSError as error:\n    assert error.errno == 30, error\n"
        "else:\n    raise SystemExit('modes can be changed')\n"
        "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x + 1\n"
    )
    # Not below pytest's folder, which only its owner may enter.
    with tempfile.TemporaryDirectory() as name:
        request(source, Path(name))
        collected = run_confined(Path(name), "cpu", device="cpu", timeout_s=90)
    assert {"read_only", "no_new_privs", "separate_builder"} <= set(collected.isolation)
    assert collected.cpu is not None
    assert collected.cpu.threads == 1
    assert any(operator.name == "aten::add" for operator in collected.cpu.operators)


@pytest.mark.slow
def test_a_confined_call_is_counted_from_outside_of_its_walls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The kernel's own events, which need no PMU.
    monkeypatch.setattr(perf_counters, "EVENTS", perf_counters.SOFTWARE)
    # Each call touches 2048 new pages; the warm-up and the other calls are not counted.
    source = (
        "import mmap, torch\n"
        "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
        "        with mmap.mmap(-1, 2**23) as fresh:\n"
        "            fresh.write(b'1' * 2**23)\n"
        "        return x + 1\n"
    )
    with tempfile.TemporaryDirectory() as name:
        request(source, Path(name))
        collected = run_confined(Path(name), "cpu", device="cpu", timeout_s=90)
    assert "seccomp" in collected.isolation
    assert collected.cpu is not None
    assert collected.cpu.no_counts == ""
    counts = collected.cpu.counts
    assert 2048 <= counts["page_faults"] < 6200
    assert 0 < counts["task_ns"] < 1e10


@pytest.mark.slow
def test_a_confined_target_finds_the_ceilings_that_the_judge_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody but its owner may enter it, as a user's cache folder.
    tmp_path.chmod(0o700)
    monkeypatch.setenv("KERNEL_REFINERY_CACHE", str(tmp_path))
    monkeypatch.setattr(ceilings, "_SECONDS", 0.0)
    measure_ceilings("cpu", threads=1)
    (stored,) = (tmp_path / "ceilings").iterdir()
    known = json.loads(stored.read_text()) | {"read_bytes_s": 7.0, "write_bytes_s": 7.0}
    stored.write_text(json.dumps(known))
    with tempfile.TemporaryDirectory() as name:
        source = REFERENCE.replace("class Model(", "class ModelNew(")
        request(source, Path(name))
        collected = run_confined(Path(name), "cpu", device="cpu", timeout_s=90)
    assert collected.work is not None
    assert collected.work.bytes_per_s == pytest.approx(7.0)


def test_what_a_candidate_leaves_behind_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LOCKS, str(tmp_path))
    # It holds the line to the broker.
    source = "import os, time\nif os.fork() == 0:\n    time.sleep(300)\n"
    source += REFERENCE.replace("class Model(", "class ModelNew(")
    with lent_folder("refinery-") as folder:
        request(source, folder)
        assert run_confined(folder, "shares", device="cpu", timeout_s=60).calls
