"""Needs Inspect AI, which lives in an environment of its own: `make test-inspect`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.analysis.run_facts import load_run
from experiments.analysis.run_report import report_on
from experiments.runs import load_runs
from tests.agent.made_records import incorrect
from tests.command import command
from tests.experiments.export.exports import BY_HAND, REFINED, SAMPLED, confirm
from tests.experiments.made_runs import made_turn, write_run

inspect_log = pytest.importorskip("inspect_ai.log", reason="make test-inspect has Inspect AI")
INSPECT = Path(sys.executable).with_name("inspect")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("logs")
    done = command("experiments.export", "inspect", BY_HAND, SAMPLED, REFINED, "-o", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [str(out / f"{r.name}.eval") for r in (BY_HAND, SAMPLED, REFINED)]
    return out


def test_a_sample_a_problem_with_its_messages(folder: Path):
    log = inspect_log.read_eval_log(str(folder / f"{BY_HAND.name}.eval"))
    table = load_runs(BY_HAND)
    assert (log.status, log.eval.model, log.eval.task) == (
        *("success", "relay/a", "kernel-refinery/refinery"),
    )
    assert {sample.id for sample in log.samples} == set(table["problem"])
    sample = next(s for s in log.samples if s.id == "level1_20_cumsum")
    assert [m.role for m in sample.messages] == ["user", "assistant"] * 4
    texts = [file.read_text() for file in (BY_HAND / "prompts").iterdir()]
    assert all(m.text in texts for m in sample.messages if m.role == "user")
    assert sample.turn_count == 4
    of = table[table["problem"] == sample.id]
    assert sample.model_usage["relay/a"].output_tokens == of["completion_tokens"].sum()
    assert sample.scores["speedup_low"].value == of["speedup_low"].max()
    models = [event for event in sample.events if event.event == "model"]
    assert [e.output.usage.total_tokens for e in models] == list(of["tokens"])
    assert log.stats.model_usage["relay/a"].total_tokens == table["tokens"].sum()


def test_samples_are_epochs_and_texts_that_were_not_kept_are_said_so(folder: Path):
    log = inspect_log.read_eval_log(str(folder / f"{SAMPLED.name}.eval"))
    table = load_runs(SAMPLED)
    assert log.eval.config.epochs == table["sample"].max() + 1
    assert {(s.id, s.epoch - 1) for s in log.samples} == set(
        zip(table["problem"], table["sample"], strict=True)
    )
    assert log.samples[0].messages[0].text == "(prompt not kept)"
    (correct,) = (score for score in log.results.scores if score.name == "correct")
    assert correct.metrics["mean"].value == (table["status"] == "correct").mean()


def test_the_share_of_correct_samples_is_fast_0_of_the_report(folder: Path):
    log = inspect_log.read_eval_log(str(folder / f"{REFINED.name}.eval"))
    report = report_on(load_run(REFINED), seed=0)
    figures = {told.figure: told.estimate.value for told in report.figures if told.estimate}
    (correct,) = (score for score in log.results.scores if score.name == "correct")
    assert correct.metrics["mean"].value == pytest.approx(figures["fast_0"])


def test_a_struck_kernel_scores_nothing(tmp_path: Path):
    record = made_turn("level1_1_a", 0, 2.0)
    run = write_run(tmp_path / "run", [record])
    confirm(run, record, incorrect())
    assert command("experiments.export", "inspect", run, "-o", tmp_path).returncode == 0
    (sample,) = inspect_log.read_eval_log(str(tmp_path / "run.eval")).samples
    assert {name: score.value for name, score in sample.scores.items()} == {
        "correct": 0.0,
        "speedup_low": 0.0,
    }
    assert sample.metadata["struck"]


@pytest.mark.thorough
def test_the_command_inspect_dumps_it(folder: Path):
    log = folder / f"{BY_HAND.name}.eval"
    done = subprocess.run([INSPECT, "log", "dump", log], capture_output=True, text=True, check=True)
    dumped = json.loads(done.stdout)
    assert dumped["eval"]["model"] == "relay/a"
    assert len(dumped["samples"]) == 4
