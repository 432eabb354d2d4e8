"""`turns.jsonl`: written once, never lost, and a torn last line does no harm."""

import json
from pathlib import Path

import pytest

from agent.record.turn import TurnRecord
from agent.record.turn_log import FILE, TurnKey, TurnLog, key_of, read_turns
from problems.errors import UsageError
from tests.agent.made_records import profile
from tests.agent.made_records import turn as made_turn


def made(problem: str = "first", sample: int = 0, turn: int = 0) -> TurnRecord:
    return made_turn(turn, problem=problem, sample=sample)


def test_records_come_back_by_problem_and_sample(tmp_path: Path) -> None:
    log = TurnLog(tmp_path)
    order = [("b", 0, 1), ("a", 1, 0), ("b", 0, 0), ("a", 0, 0), ("b", 0, 10)]
    for key in order:
        assert log.append(made(*key))
    assert [tuple(key_of(each)) for each in log.of("b")] == [("b", 0, turn) for turn in (0, 1, 10)]
    assert [record.sample for record in log.of("a")] == [0, 1]
    assert log.of("a", 1) == [made("a", 1)]
    assert log.of("c") == []
    assert [tuple(key_of(record)) for record in read_turns(tmp_path)] == order


def test_a_key_is_written_once(tmp_path: Path) -> None:
    log = TurnLog(tmp_path)
    assert log.append(made())
    assert not log.append(made())
    assert not TurnLog(tmp_path).append(made())
    assert len((tmp_path / FILE).read_text().splitlines()) == 1


def test_a_line_is_what_other_programs_read(tmp_path: Path) -> None:
    TurnLog(tmp_path).append(made())
    line = json.loads((tmp_path / FILE).read_text())
    assert line["schema"] == 1 and line["evaluation"]["schema"] == 1
    assert {"suite", "problem_hash", "call", "usage", "seconds", "candidate"} <= set(line)


@pytest.mark.parametrize("cut", range(1, 400, 37))
def test_a_torn_last_line_is_cut_off(tmp_path: Path, cut: int) -> None:
    log = TurnLog(tmp_path)
    log.append(made(turn=0))
    log.append(made(turn=1))
    path = tmp_path / FILE
    whole = path.read_bytes()
    path.write_bytes(whole[: -1 - cut])
    assert [record.turn for record in read_turns(tmp_path)] == [0]
    assert path.read_bytes() == whole[: -1 - cut]  # reading repairs nothing
    again = TurnLog(tmp_path)
    assert TurnKey("first", 0, 1) not in again
    assert again.append(made(turn=1))
    assert path.read_bytes() == whole


def test_a_line_that_only_lacks_its_newline_is_kept(tmp_path: Path) -> None:
    TurnLog(tmp_path).append(made())
    path = tmp_path / FILE
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert len(list(read_turns(tmp_path))) == 1
    assert not TurnLog(tmp_path).append(made())
    assert path.read_bytes() == whole


def test_a_bad_line_elsewhere_is_told_with_its_number(tmp_path: Path) -> None:
    TurnLog(tmp_path).append(made())
    path = tmp_path / FILE
    path.write_bytes(b'{"schema": 1}\n' + path.read_bytes())
    with pytest.raises(UsageError, match=r"line 1 is not a turn .* --redo") as caught:
        TurnLog(tmp_path)
    assert "\n" not in str(caught.value)


def test_what_a_problem_stands_at_is_found_again(tmp_path: Path) -> None:
    log = TurnLog(tmp_path)
    for record in (made("a", turn=1), made("b"), made("a", turn=0)):
        log.append(record)
    log.append(made("b"))  # there already
    assert (log.progress("a").turns, log.progress("b").turns) == (2, 1)
    again = TurnLog(tmp_path)
    for problem in ("a", "b", "c"):
        assert again.progress(problem) == log.progress(problem)


def test_a_profile_that_is_asked_for_later_joins_its_turn(tmp_path: Path) -> None:
    log = TurnLog(tmp_path)
    records = [made_turn(turn, problem=name, profile=None) for name, turn in [("a", 0), ("b", 0)]]
    for record in records:
        log.append(record)
    profiled = records[0].updated(profile=profile())
    log.add_profile(profiled)
    records.append(made("b", turn=1))
    log.append(records[2])
    assert log.of("a") == [profiled] and log.of("b") == records[1:]
    assert list(read_turns(tmp_path)) == [profiled, *records[1:]]
    assert TurnLog(tmp_path).progress("a") == log.progress("a")


def test_no_file_is_no_turns(tmp_path: Path) -> None:
    assert list(read_turns(tmp_path)) == []
    assert TurnLog(tmp_path).of("first") == []
