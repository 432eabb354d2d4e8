import json
from pathlib import Path

from tests.agent.made_records import incorrect, turn
from tests.command import command, refused
from tests.evaluator.made_evaluations import correct
from tests.experiments.export.exports import SAMPLED, confirm
from tests.experiments.made_runs import made_run, made_turn, write_run

FIELDS = {"sample_id", "compiled", "correctness", "metadata", "runtime", "runtime_stats"}


def exported(run: Path, out: Path) -> tuple[dict[str, list[dict]], str]:
    done = command("experiments.export", "kernelbench", run, "-o", out)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{out / run.name / 'eval_results.json'}\n"
    return json.loads(Path(done.stdout.strip()).read_text()), done.stderr


def test_samples_are_sample_ids(tmp_path: Path):
    run = made_run(
        tmp_path / "run",
        {"level1_19_relu": [None, 1.5, "wrong"], "level1_3_x": [2.0, 1.0, 1.0]},
        strategy="sample",
        suite="KernelBench",
    )
    results, told = exported(run, tmp_path / "out")
    assert (set(results), told) == ({"19", "3"}, "")
    relu = results["19"]
    assert all(set(entry) == FIELDS for entry in relu)
    assert [entry["sample_id"] for entry in relu] == [0, 1, 2]
    assert [entry["compiled"] for entry in relu] == [False, True, True]
    assert [entry["correctness"] for entry in relu] == [False, True, False]
    assert [entry["runtime"] > 0 for entry in relu] == [False, True, False]


def test_refined_turns_are_one_sample_with_the_best_kernel(tmp_path: Path):
    run = made_run(tmp_path / "run", {"level2_7_gate": [1.5, 2.0, "wrong"]}, suite="KernelBench")
    results, _ = exported(run, tmp_path / "out")
    (entry,) = results["7"]
    assert (entry["sample_id"], entry["correctness"]) == (0, True)
    assert entry["metadata"]["speedup"] == 2.0


def test_a_struck_kernel_is_not_the_best_and_the_second_verdict_counts(tmp_path: Path):
    records = [made_turn("level1_1_a", call, 1.0 + call, suite="KB") for call in range(3)]
    run = write_run(tmp_path / "run", records)
    confirm(run, records[2], incorrect())
    confirm(run, records[1], correct(1.75))
    results, _ = exported(run, tmp_path / "out")
    assert results["1"][0]["metadata"]["speedup"] == 1.75


def test_where_all_were_struck_the_last_verdict_is_not_correct(tmp_path: Path):
    records = [made_turn("level1_1_a", 0, 2.0, suite="KB")]
    run = write_run(tmp_path / "run", records)
    confirm(run, records[0], incorrect())
    results, _ = exported(run, tmp_path / "out")
    assert (results["1"][0]["correctness"], results["1"][0]["runtime"]) == (False, -1.0)


def test_levels_get_a_file_each_and_our_own_numbers_a_note(tmp_path: Path):
    done = command("experiments.export", "kernelbench", SAMPLED, "-o", tmp_path)
    folder = tmp_path / SAMPLED.name
    assert done.stdout.split() == [
        str(folder / f"eval_results_level_{level}.json") for level in (1, 2)
    ]
    assert "numbers are those of our own suite" in done.stderr
    again = command("experiments.export", "kernelbench", SAMPLED, "-o", tmp_path)
    assert again.returncode == 0


def test_tasks_without_a_number_are_left_out_or_refused(tmp_path: Path):
    lone, numbered = (turn(0, correct(2.0), problem=name) for name in ("gate", "level1_2_b"))
    run = write_run(tmp_path / "lone", [lone])
    line = refused("experiments.export", "kernelbench", run, "-o", tmp_path / "out")
    assert "no problem with a level and a number" in line
    mixed = write_run(
        tmp_path / "mixed", [lone, numbered.model_copy(update={"suite": "KernelBench"})]
    )
    results, told = exported(mixed, tmp_path / "out")
    assert set(results) == {"2"}
    assert told == "note: mixed: left out, for want of a number: gate\n"
