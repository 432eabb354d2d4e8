import json
import math
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from agent.record.archive import unpacked
from agent.show import command
from evaluator.command.command_line import serve
from experiments.runs import load_runs
from problems.errors import UsageError
from tests.agent.made_records import turn
from tests.evaluator.made_evaluations import correct
from tests.experiments.made_runs import made_run, made_turn, write_run


def test_one_row_a_turn_with_what_became_of_it(tmp_path: Path):
    run = made_run(tmp_path / "first", {"level2_7_gate": [None, 1.5, "wrong", 1.2, 2.0]})
    table = load_runs(run)
    assert list(table["status"]) == ["build_error", "correct", "incorrect", "correct", "correct"]
    assert list(table["call"]) == [0, 1, 2, 3, 4]
    assert set(table["run"]) == {"first"}
    assert set(table["level"]) == {2}
    assert set(table["budget"]) == {5.0}
    assert set(table["limits"]) == {""}
    first, second = table.iloc[0], table.iloc[1]
    assert first["reason"] == "compile_failed"
    assert first["bottleneck"] == first["verdict"] == ""
    assert math.isnan(first["speedup"])
    assert (second["speedup_low"], second["speedup_high"]) == (1.5 * 0.99, 1.5 * 1.01)
    assert (second["bottleneck"], second["rung"]) == ("memory_bandwidth", "cpu")
    assert second["tokens"] == 1300
    assert second["seconds_wall"] == 6.0


def test_best_so_far_starts_with_the_first_correct_kernel_and_never_falls(tmp_path: Path):
    run = made_run(tmp_path / "run", {"a": [None, 1.5, "wrong", 1.2, 2.0], "b": [0.5, "wrong"]})
    table = load_runs(run)
    of_a, of_b = (list(table[table["problem"] == name]["best_so_far"]) for name in "ab")
    assert math.isnan(of_a[0])
    assert of_a[1:] == [1.5, 1.5, 1.5, 2.0]
    assert of_b == [0.5, 0.5]


def test_rows_stand_by_problem_and_call_whatever_the_order_written(tmp_path: Path):
    records = [made_turn(name, call, 1.0 + call) for call in (1, 0) for name in ("z", "a")]
    table = load_runs(write_run(tmp_path / "run", records))
    assert list(zip(table["problem"], table["call"], strict=True)) == [
        ("z", 0),
        ("z", 1),
        ("a", 0),
        ("a", 1),
    ]


def test_a_folder_of_runs_several_paths_and_a_file_are_read_alike(tmp_path: Path):
    first = made_run(tmp_path / "runs" / "first", {"a": [1.5]})
    second = made_run(tmp_path / "runs" / "deeper" / "second", {"a": [None]})
    folder = load_runs(tmp_path / "runs")
    assert sorted(set(folder["run"])) == ["first", "second"]
    several = load_runs([first, str(second / "turns.jsonl"), first])
    assert list(several["run"]) == ["first", "second"]


def test_runs_of_the_same_name_stay_apart(tmp_path: Path):
    made_run(tmp_path / "x" / "run", {"a": [1.5]})
    made_run(tmp_path / "y" / "run", {"a": [1.5]})
    assert sorted(load_runs([tmp_path / "x" / "run", tmp_path / "y" / "run"])["run"]) == [
        "x/run",
        "y/run",
    ]


def test_an_archive_is_read_like_its_folder(tmp_path: Path):
    run = made_run(tmp_path / "run", {"a": [1.5, None]})
    archive = tmp_path / "run.tar.xz"
    with tarfile.open(archive, "w:xz") as file:
        file.add(run, "run")
    for _ in range(2):
        assert load_runs(archive).drop(columns="path").equals(load_runs(run).drop(columns="path"))
    archive.write_bytes(b"torn")
    with pytest.raises(UsageError, match="cannot be unpacked"):
        load_runs(archive)


def test_a_recording_is_read_without_its_other_files(tmp_path: Path):
    run = made_run(tmp_path / "run", {"a": [1.5, None]})
    (run / "config.yaml").unlink()
    assert load_runs(run)["budget"].isna().all()


def test_what_else_may_end_a_problem_is_told(tmp_path: Path):
    run = made_run(tmp_path / "run", {"a": [1.5]}, limits={"budget_tokens": 3, "budget_usd": None})
    assert set(load_runs(run)["limits"]) == {"budget_tokens=3"}


@pytest.mark.parametrize("torn", [200, -1])
def test_a_torn_last_line_is_passed_over(tmp_path: Path, torn: int):
    run = made_run(tmp_path / "run", {"a": [1.5, 2.0]})
    whole = (run / "turns.jsonl").read_text()
    last = whole.splitlines()[-1]
    (run / "turns.jsonl").write_text(whole + last[:torn])
    assert load_runs(run)["speedup"].tolist() == [1.5, 2.0]


def test_a_turn_written_twice_counts_once(tmp_path: Path):
    run = made_run(tmp_path / "run", {"a": [1.5, 2.0]})
    whole = (run / "turns.jsonl").read_text()
    (run / "turns.jsonl").write_text(whole + whole)
    assert len(load_runs(run)) == 2


def broken(run: Path, line: str) -> Path:
    (run / "turns.jsonl").write_text(line + "\n" + (run / "turns.jsonl").read_text())
    return run


def line_with(**changes: object) -> str:
    record = json.loads(turn(0, correct()).model_dump_json()) | changes
    return json.dumps({key: value for key, value in record.items() if value != "gone"})


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{torn", "line 1 is not JSON"),
        ("[]", "line 1 is not a turn"),
        (line_with(schema=2), "schema 2, and this version reads 1"),
        (line_with(problem_hash="gone"), "'problem_hash'"),
        (line_with(evaluation=None), "not a whole turn"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, words: str):
    run = broken(made_run(tmp_path / "run", {"a": [1.5]}), line)
    with pytest.raises(UsageError, match=words):
        load_runs(run)


def test_where_there_is_no_run_one_line_says_so(tmp_path: Path):
    with pytest.raises(UsageError, match="there is no folder"):
        load_runs(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="holds no run"):
        load_runs(tmp_path)
    empty = write_run(tmp_path / "empty", [])
    with pytest.raises(UsageError, match="holds no turn yet"):
        load_runs(empty)
    bad = made_run(tmp_path / "bad", {"a": [1.5]})
    (bad / "config.yaml").write_text("{: not yaml")
    with pytest.raises(UsageError, match="is not YAML"):
        load_runs(bad)


def test_a_forked_run_has_its_own_feedback_throughout(tmp_path: Path):
    recorded = unpacked(Path("experiments/recordings/refine-tuner-cpu.tar.xz"))
    shutil.copytree(recorded, tmp_path / "fork")
    config = tmp_path / "fork" / "config.yaml"
    assert set(load_runs(tmp_path / "fork")["feedback"]) == {"G+E+P"}
    text = config.read_text().replace("feedback: G+E+P", "feedback: G+E")
    config.write_text(f"{text}fork: runs/before@3\n")
    assert set(load_runs(tmp_path / "fork")["feedback"]) == {"G+E"}


@pytest.mark.parametrize("name", ["kernels/a.py", "turns.jsonl", "rivals"])
@pytest.mark.parametrize("is_pipe", [True, False])
def test_links_and_pipes_in_a_run_are_not_read(tmp_path: Path, capsys, name: str, is_pipe: bool):
    run = made_run(tmp_path / "run", {"p": [1.0]})
    (run / name).parent.mkdir(exist_ok=True)
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name) if is_pipe else (run / name).symlink_to(__file__)
    with pytest.raises(UsageError, match=f"{name} is a link or no plain file"):
        load_runs(run)
    assert serve(command, "show", [str(run)]) == 2
    assert f"{name} is a link or no plain file" in capsys.readouterr().err.replace("\n", "")
