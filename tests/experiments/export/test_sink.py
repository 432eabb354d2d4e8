import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from experiments.export import recorded_run
from experiments.export.recorded_run import RecordedRun
from tests.agent.quick_task import QUICK_ANSWERS, QUICK_TASK
from tests.agent.relay_answers import answering
from tests.command import ROOT
from tests.experiments.export.collector import attributes, collector
from tests.experiments.made_runs import made_turn, write_run


class Seen:
    def __init__(self) -> None:
        self.turns: list[int] = []
        self.closed = 0

    def update(self, run: RecordedRun) -> None:
        self.turns.append(len(run.turns))

    def close(self) -> None:
        self.closed += 1


def test_a_run_that_has_ended_is_read_once(tmp_path: Path):
    run = write_run(tmp_path / "run", [made_turn("a", 0, 1.5)])
    (run / "result.json").write_text("{}")
    for follow in (True, False):
        seen = Seen()
        recorded_run.send([run], seen, follow=follow)
        assert (seen.turns, seen.closed) == ([1], 1)


def test_following_goes_on_until_the_result_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(recorded_run, "POLL_S", 0.01)
    run, seen = write_run(tmp_path / "run", [made_turn("a", 0, 1.5)]), Seen()
    thread = threading.Thread(target=recorded_run.send, args=([run], seen), kwargs={"follow": True})
    thread.start()
    for call in (1, 2):
        with (run / "turns.jsonl").open("a") as file:
            file.write(made_turn("a", call, 1.5).model_dump_json(by_alias=True) + "\n")
        while not seen.turns or seen.turns[-1] < call + 1:
            time.sleep(0.01)
    assert not seen.closed
    (run / "result.json").write_text("{}")
    thread.join(timeout=20)
    assert (seen.turns[-1], seen.closed) == (3, 1)


def test_what_began_is_closed_after_an_error(tmp_path: Path):
    class Broken(Seen):
        def update(self, run: RecordedRun) -> None:
            raise OSError("gone")

    run, seen = write_run(tmp_path / "run", [made_turn("a", 0, 1.5)]), Broken()
    with pytest.raises(OSError, match="gone"):
        recorded_run.send([run], seen, follow=True)
    assert seen.closed == 1


@pytest.mark.thorough
def test_spans_of_a_real_run_come_while_it_goes_on(tmp_path: Path):
    run, out, relay = tmp_path / "run", tmp_path / "turns.jsonl", tmp_path / "relay"
    relay.mkdir()
    (tmp_path / "doubled.py").write_text(QUICK_TASK)
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}

    def started(*words: object) -> subprocess.Popen[str]:
        line = [sys.executable, "-W", "error", "-m", *map(str, words)]
        return subprocess.Popen(line, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)

    options = ("--problem", tmp_path / "doubled.py", "-m", f"relay/{relay}", "--device", "cpu")
    options += ("--timing-seconds", 0.1)
    with collector() as server, answering(relay, *QUICK_ANSWERS):
        making = started(
            "agent.run", *options, "--budget", 2, "--workers", 1, "--confirm", 0, "-o", run
        )
        while not (run / "turns.jsonl").exists() or not (run / "turns.jsonl").read_text():
            assert making.poll() is None, making.communicate()[1]
            time.sleep(0.1)
        following = started("experiments.export", "otlp", run, "--endpoint", server.url, "--follow")
        told = following.communicate(timeout=300)[1]
        assert following.returncode == 0, told
        assert making.wait(timeout=60) == 0
        making.communicate()
        names = [span.name for span in server.spans]
        assert [n for n in names if n.startswith("turn")] == ["turn 0.0", "turn 0.1"]
        problem = server.spans[-1]
        assert (problem.name, problem.parent_span_id) == ("doubled", b"")
        assert attributes(problem)["kernel_refinery.turns"] == 2
    exporting = started("experiments.export", "jsonl", run, "-o", out)
    assert (exporting.communicate()[1], exporting.returncode) == (f"{out}: 2 turns\n", 0)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["turn"] for line in lines] == [0, 1]
    assert all(line["prompt"] and "ModelNew" in line["completion"] for line in lines)
