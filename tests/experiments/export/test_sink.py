import threading
import time
from pathlib import Path

import pytest

from experiments.export import recorded_run
from experiments.export.recorded_run import RecordedRun
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
            file.write(made_turn("a", call, 1.5).model_dump_json() + "\n")
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
