import json
from pathlib import Path

import pytest

from agent.llm.recording import load_recording
from agent.record.run_files import RunFiles
from agent.record.turn_log import read_turns
from experiments.analysis.run_facts import load_run
from experiments.compact import KEPT_LINES, make_compact
from experiments.runs import load_runs
from problems.errors import UsageError
from tests.agent.made_records import keep
from tests.command import command, refused
from tests.experiments.made_runs import made_run, random_results, with_kernels

MODULE = "experiments.compact"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = made_run(tmp_path / "run", random_results(5, 4, gain=1.5, seed=0))
    with_kernels(folder, "class ModelNew: pass\n")
    return folder


def test_it_reads_like_the_run_itself(run: Path, tmp_path: Path):
    make_compact(run, tmp_path / "small")
    whole, small = load_runs(run), load_runs(tmp_path / "small")
    assert small.drop(columns=["run", "path"]).equals(
        whole.sort_values(["problem", "call"]).reset_index(drop=True).drop(columns=["run", "path"])
    )
    assert len(list(read_turns(tmp_path / "small"))) == 20
    assert not (tmp_path / "small" / "kernels").exists()
    told = (tmp_path / "small" / "README.md").read_text()
    assert "rule-based kernel writer, not a language model" in told
    assert "5 problems, 20 turns" in told


def test_it_is_smaller_and_says_what_was_cut(run: Path, tmp_path: Path):
    make_compact(run, tmp_path / "small")
    before, after = (
        (folder / "turns.jsonl").stat().st_size for folder in (run, tmp_path / "small")
    )
    assert after < 0.8 * before
    [failed, *_] = [
        turn for turn in read_turns(tmp_path / "small") if turn.evaluation.status == "build_error"
    ]
    assert failed.evaluation.build is not None
    assert failed.evaluation.build.log.endswith(f"({500 - KEPT_LINES} more lines, not kept)")


def test_answers_that_were_kept_can_be_given_again(run: Path, tmp_path: Path):
    first = next(read_turns(run))
    keep(run, first, answer="an answer")
    make_compact(run, tmp_path / "small", parts=["completions"])
    assert load_recording(tmp_path / "small").answers[first.problem, 0, 0].text == "an answer"
    assert "replay/small" in (tmp_path / "small" / "README.md").read_text()


def test_no_path_of_this_machine_stays_and_the_commit_does(run: Path, tmp_path: Path):
    environment = {"device": "a CPU", "cache": f"{Path.home()}/x", "commit": "0123456789ab+changes"}
    (run / "environment.json").write_text(json.dumps(environment))
    make_compact(run, tmp_path / "small")
    assert load_run(tmp_path / "small").facts.commit == "0123456789ab+changes"
    for file in (tmp_path / "small").rglob("*"):
        if file.is_file():
            text = file.read_text()
            assert str(tmp_path) not in text, file
            assert f"{Path.home()}/" not in text, file


def test_where_a_relay_lay_is_cut_to_a_name(run: Path, tmp_path: Path):
    records = run / "turns.jsonl"
    records.write_text(records.read_text().replace("offline/tuner", "relay//some/where/answers"))
    make_compact(run, tmp_path / "small")
    assert next(read_turns(tmp_path / "small")).model == "relay/answers"


def test_one_problem_can_be_kept_alone(run: Path, tmp_path: Path):
    one = next(read_turns(run)).problem
    make_compact(run, tmp_path / "small", parts=["kernels"], problems=[one])
    turns = list(read_turns(tmp_path / "small"))
    assert {turn.problem for turn in turns} == {one}
    assert [file.stem for file in (tmp_path / "small" / "best").iterdir()] == [one]
    kernels = {file.stem for file in (tmp_path / "small" / "kernels").iterdir()}
    assert kernels == {turn.candidate for turn in turns}
    assert RunFiles(tmp_path / "small").config().problems == (one,)


def test_a_problem_that_the_run_lacks_is_refused(run: Path, tmp_path: Path):
    with pytest.raises(UsageError, match="nosuch"):
        make_compact(run, tmp_path / "small", problems=["nosuch"])


def test_the_command_makes_it_once(run: Path, tmp_path: Path):
    out = tmp_path / "small"
    done = command(MODULE, run, out, "--kernels")
    assert (done.returncode, done.stdout) == (0, "")
    assert (out / "best").is_dir()
    assert len(list((out / "kernels").iterdir())) == 20
    assert "exists; name a folder that does not" in refused(MODULE, run, out)
