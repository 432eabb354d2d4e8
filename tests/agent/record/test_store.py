"""The run directory: who may write there, what is refused, what survives."""

import json
import os
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from agent.record.claim import locked
from agent.record.completion import Completion, CompletionRequest, Message, Usage
from agent.record.durable import StoreError
from agent.record.store import open_store, request_hash
from agent.record.turn import PendingTurn, Work
from agent.record.turn_log import TurnKey
from evaluator.evaluation import Backend, Candidate
from problems.errors import UsageError
from tests.agent.made_records import correct
from tests.agent.stand_in import config

KEY = TurnKey("first", 0, 1)


def listing(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    run = config(tmp_path / "run")
    told = f"in use by process {os.getpid()}; .* -o"
    with open_store(run), pytest.raises(UsageError, match=told):
        open_store(run)
    open_store(run).close()


def test_a_lock_that_is_about_to_be_free_is_waited_for(tmp_path: Path) -> None:
    """A process that a killed run was starting has a copy of the handle until it runs."""
    lock = locked(tmp_path)
    copy = os.dup(lock.fileno())
    lock.close()
    with pytest.raises(UsageError, match=f"is in use by process {os.getpid()}; wait for it"):
        locked(tmp_path)
    closing = threading.Timer(0.1, os.close, [copy])
    closing.start()
    locked(tmp_path).close()
    closing.join()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"seed": 3}, "seed=0, not 3"),
        ({"feedback": "G+E"}, r"feedback=G\+E\+P, not G\+E"),
        ({"problems": ("first",)}, "problems=first,second, not first"),
        ({"model_args": {"top_p": 0.5}}, "model_args={}, not {'top_p': 0.5}"),
        ({"temperature": 0.7}, "temperature=none, not 0.7"),
        ({"backend": "triton"}, "backend=cpp, not triton"),
        ({"device": "cuda:0"}, "device=cpu, not cuda"),
    ],
)
def test_other_settings_are_refused_and_nothing_is_written(
    tmp_path: Path, settings: dict[str, object], told: str
) -> None:
    run = config(tmp_path / "run")
    open_store(run).close()
    before = listing(tmp_path)
    with pytest.raises(UsageError, match=f"was made with {told}; .* -o, .* --redo") as caught:
        open_store(config(tmp_path / "run", **settings))
    assert "\n" not in str(caught.value)
    assert listing(tmp_path) == before


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("years of work")
    for redo in (False, True):
        with pytest.raises(UsageError, match=r"thesis\.tex lies there"):
            open_store(config(tmp_path / "run"), redo=redo)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["thesis.tex"]


def test_a_folder_that_cannot_be_made_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    for path, told in ((tmp_path / "run", "is a file"), (Path("/proc/no"), "cannot write /proc")):
        with pytest.raises(UsageError, match=told) as caught:
            open_store(config(path))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "held"),
    [
        *[("config.yaml", held) for held in (b"strategy: [", b"\xff\xfe", b"[" * 500)],
        *[("result.json", held) for held in (b"{", b"[]", b"\xff")],
        ("pending/evil.json", b"{}"),
    ],
)
def test_what_was_damaged_by_hand_is_told(tmp_path: Path, name: str, held: bytes) -> None:
    open_store(config(tmp_path / "run")).close()
    (tmp_path / "run" / "pending").mkdir()
    (tmp_path / "run" / name).write_bytes(held)
    told = rf"{name} can't be read .*; (.* --redo, .*|.*remove it)$"
    with pytest.raises(UsageError, match=told), open_store(config(tmp_path / "run")) as store:
        print(store.result(), *store.pending_turns())


def test_redo_removes_what_is_ours_and_no_more(tmp_path: Path) -> None:
    run = config(tmp_path / "run")
    with open_store(run) as store:
        store.save_prompt("words")
        store.save_kernel(Candidate(source="x = 1", backend=Backend.CPP))
    (run.output / "confirmations").mkdir()
    (run.output / "notes.txt").write_text("mine")
    with open_store(config(run.output, seed=5), redo=True) as store:
        assert store.config().seed == 5
    assert set(listing(run.output)) == {"config.yaml", "notes.txt"}


def test_texts_are_stored_once_under_their_hash(tmp_path: Path) -> None:
    with open_store(config(tmp_path / "run")) as store:
        candidate = Candidate(source="a = 'ä'\n", backend=Backend.CPP)
        assert store.save_kernel(candidate) == candidate.hash
        assert store.kernel(candidate.hash) == candidate.source
        written = store.kernel_path(candidate.hash).stat().st_mtime_ns
        store.save_kernel(candidate)
        assert store.kernel_path(candidate.hash).stat().st_mtime_ns == written
        assert store.prompt(store.save_prompt("one\ntwo")) == "one\ntwo"


def test_a_completion_is_found_by_its_request(tmp_path: Path) -> None:
    asked = (Message(role="user", content="p"),)
    request = CompletionRequest(model="offline/tuner", messages=asked, problem="first")
    answer = Completion(
        text="t", model_asked="m", model_answered="m", usage=Usage(cost_usd=None), seconds=1.0
    )
    other = request.model_copy(update={"sample": 1})
    with open_store(config(tmp_path / "run")) as store:
        name = store.save_completion(request, "prompt", answer)
        assert name == request_hash(request) != request_hash(other)
        assert store.has_completion(name) and not store.has_completion(request_hash(other))
        assert store.completion(name).completion == answer
        stored = json.loads(store.completion_path(name).read_text())
        assert (stored["problem"], stored["sample"], stored["turn"]) == ("first", 0, 0)


def test_work_in_flight_is_counted_only_when_a_kill_left_it(tmp_path: Path) -> None:
    with open_store(config(tmp_path / "run")) as store:
        turn = PendingTurn(prompt="p", completion="c")
        with pytest.raises(OSError, match="ours"), store.in_flight(KEY, turn, Work.JUDGE):
            raise OSError("ours")
        turn = store.pending_turn(KEY)  # type: ignore[assignment]
        assert (turn.in_flight, turn.repeated) == (None, 0)
        killed = turn.updated(in_flight=Work.JUDGE)
        with store.in_flight(KEY, killed, Work.JUDGE) as turn:
            assert (turn.in_flight, turn.repeated) == (None, 1)
        # A stage that a kill had interrupted after its outcome was stored is not done again.
        with store.in_flight(KEY, killed, Work.PROFILE) as turn:
            assert turn.repeated == 0


def test_of_a_pending_turn_the_last_whole_step_counts(tmp_path: Path) -> None:
    turn = PendingTurn(prompt="p", completion="c", repeated=2)
    with open_store(config(tmp_path / "run")) as store:
        store.journal(KEY, turn)
        store.journal(KEY, turn.updated(candidate="k", evaluation=correct()))
    (file,) = (tmp_path / "run" / "pending").iterdir()
    for torn in (file.read_bytes()[:-20], turn.model_dump_json().encode() + b"\n\0\0\0"):
        file.write_bytes(torn)
        with open_store(config(tmp_path / "run")) as store:
            assert list(store.pending_turns()) == [(KEY, turn)]
            store.journal(KEY, turn.updated(repeated=3))
        with open_store(config(tmp_path / "run")) as store:
            assert store.pending_turn(KEY) == turn.updated(repeated=3)


@pytest.mark.parametrize("left", [b"", b"\0" * 500, b'{"prompt": "p'])
def test_a_pending_turn_that_a_power_cut_left_empty_is_none(tmp_path: Path, left: bytes) -> None:
    with open_store(config(tmp_path / "run")) as store:
        store.journal(KEY, PendingTurn(prompt="p", completion="c"))
    (file,) = (tmp_path / "run" / "pending").iterdir()
    file.write_bytes(left)
    with open_store(config(tmp_path / "run")) as store:
        assert store.pending_turn(KEY) is None and list(store.pending_turns()) == []


def test_only_what_cannot_be_made_again_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(config(tmp_path / "run")) as store:
        waited: list[int] = []
        monkeypatch.setattr("agent.record.durable.os.fsync", waited.append)
        turn = PendingTurn(prompt="p", completion="c")
        store.journal(KEY, turn)
        assert len(waited) == 0
        store.save_prompt("words")
        store.save_kernel(Candidate(source="x = 1", backend=Backend.CPP))
        store.journal(KEY, turn.updated(wasted=Usage(cost_usd=0.5)))
        assert len(waited) == 3


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(config(tmp_path / "run")) as store:
        full = Mock(side_effect=OSError(28, "No space left on device"))
        monkeypatch.setattr("agent.record.durable.os.fsync", full)
        with pytest.raises(StoreError, match="No space left on device; free some space"):
            store.save_prompt("words")
    assert not list((tmp_path / "run").rglob("*.tmp"))
