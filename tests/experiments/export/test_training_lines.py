import json
from pathlib import Path

from experiments.export.recorded_run import recorded_runs
from experiments.export.training_lines import training_line
from tests.agent.made_records import incorrect, turn
from tests.command import command, refused
from tests.evaluator.made_evaluations import correct
from tests.experiments.export.exports import BY_HAND, REFINED, add_texts, confirm
from tests.experiments.made_runs import write_run


def test_a_line_a_turn(tmp_path: Path):
    out = tmp_path / "turns.jsonl"
    done = command("experiments.export", "jsonl", BY_HAND, "-o", out)
    assert (done.returncode, done.stderr) == (0, f"{out}: 16 turns\n")
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    first = lines[0]
    record = recorded_runs([BY_HAND])[0].turns[0].record
    assert (first["problem"], first["turn"]) == (record.problem, record.turn)
    assert first["prompt"] == (BY_HAND / f"prompts/{record.prompt}.txt").read_text()
    stored = json.loads((BY_HAND / f"completions/{record.completion}.json").read_text())
    assert first["completion"] == stored["completion"]["text"]
    assert first["reward"] == record.evaluation.timing.speedup_low == first["speedup_low"]
    assert (first["run"], first["model"], first["sample"]) == ("relay-by-hand-cpu", "relay/a", 0)


def test_a_run_without_texts_is_refused(tmp_path: Path):
    line = refused("experiments.export", "jsonl", REFINED, "-o", tmp_path / "x.jsonl")
    assert "kept no prompts and answers" in line


def test_the_second_verdict_decides_the_reward_of_all_identical_kernels(tmp_path: Path):
    records = [
        turn(0, correct(3.0), candidate="held"),
        turn(1, correct(4.0), candidate="struck"),
        turn(2, correct(4.2), candidate="struck", judged_with="level1_1_square.0.1"),
        turn(3, correct(2.0), candidate="only"),
        turn(4, incorrect(), candidate="wrong"),
    ]
    records = [
        r.model_copy(update={"prompt": f"p{r.call}", "completion": f"c{r.call}"}) for r in records
    ]
    run = write_run(tmp_path / "run", records)
    add_texts(run, records)
    confirm(run, records[1], incorrect())
    confirm(run, records[0], correct(2.5))
    lines = [training_line(turn) for turn in recorded_runs([run])[0].turns]
    low = [correct(value).timing.speedup_low for value in (2.5, 2.0)]
    assert [line["reward"] for line in lines] == [low[0], 0.0, 0.0, low[1], 0.0]
    assert [line["struck"] for line in lines] == [False, True, True, False, False]
    assert [line["status"] for line in lines] == [
        *("correct", "incorrect", "incorrect", "correct", "incorrect")
    ]
    assert [line["reasoning"] for line in lines] == [
        f"thinking of Answer {call}" for call in range(5)
    ]


def test_no_reward_for_a_finding_or_without_a_time(tmp_path: Path):
    found = correct(3.0).model_copy(update={"findings": ("it writes into its inputs",)})
    untimed = correct(3.0).model_copy(update={"timing": None})
    run = write_run(tmp_path / "run", [turn(0, found), turn(1, untimed, candidate="other")])
    assert [turn.reward for turn in recorded_runs([run])[0].turns] == [0.0, 0.0]


def test_a_kernel_that_held_and_was_not_timed_again_keeps_its_first_time(tmp_path: Path):
    record = turn(0, correct(3.0))
    run = write_run(tmp_path / "run", [record])
    confirm(run, record, correct(3.0).model_copy(update={"timing": None}))
    assert recorded_runs([run])[0].turns[0].reward == record.evaluation.timing.speedup_low


def test_turns_whose_texts_were_not_kept_are_counted(tmp_path: Path):
    records = [
        turn(call, correct(2.0)).model_copy(
            update={"prompt": f"p{call}", "completion": f"c{call}", "candidate": f"k{call}"}
        )
        for call in range(3)
    ]
    run = write_run(tmp_path / "run", records)
    add_texts(run, records[:2])
    out = tmp_path / "turns.jsonl"
    done = command("experiments.export", "jsonl", run, "-o", out)
    assert done.stderr == f"{out}: 2 turns; 1 left out, whose prompt or answer was not kept\n"
