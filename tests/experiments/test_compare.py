import json
from pathlib import Path

import pytest

from experiments.comparison import Comparison, Row, compare_runs
from problems.errors import UsageError
from tests.agent.made_records import profile, turn
from tests.command import command, refused
from tests.experiments.made_runs import made_run, random_results, write_run

MODULE = "experiments.compare"


def row(comparison: Comparison, figure: str) -> Row:
    return next(entry for entry in comparison.rows if entry.figure == figure)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """14 problems, 5 calls: B sharpens its kernels from call to call, A does not."""
    a = made_run(tmp_path / "plain", random_results(14, 5, gain=1.0, seed=1), strategy="sample")
    b = made_run(tmp_path / "better", random_results(14, 5, gain=2.0, seed=1))
    return a, b


def test_the_better_run_is_named(pair: tuple[Path, Path]):
    found = compare_runs(*pair)
    kept = row(found, "speedup_kept")
    assert kept.verdict == "B"
    assert kept.difference is not None and kept.difference.low is not None
    assert kept.difference.low > 1
    assert kept.b and kept.a and kept.difference.value == pytest.approx(kept.b.value / kept.a.value)
    assert row(compare_runs(*reversed(pair)), "speedup_kept").verdict == "A"
    assert {row(found, name).verdict for name in ("tokens", "correct_answers")} == {"unclear"}


def test_lower_costs_are_better(tmp_path: Path):
    cheap = {"prompt_tokens": 10, "completion_tokens": 1, "cost_usd": 0.01}
    results = random_results(8, 2, gain=1.0, seed=0)
    a = made_run(tmp_path / "a", results, usage=cheap)
    b = made_run(tmp_path / "b", results)
    found = compare_runs(a, b)
    assert row(found, "tokens").verdict == "A"
    assert row(found, "cost_usd").verdict == "B"


def test_an_unknown_price_is_no_verdict(tmp_path: Path):
    unknown = {"prompt_tokens": 10, "completion_tokens": 1, "cost_usd": None}
    results = random_results(8, 2, gain=1.0, seed=0)
    found = compare_runs(
        made_run(tmp_path / "a", results, usage=unknown), made_run(tmp_path / "b", results)
    )
    cost = row(found, "cost_usd")
    assert (cost.a, cost.difference, cost.verdict) == (None, None, "unknown")
    assert cost.b is not None
    assert "A: 16 of 16 calls have no known price" in found.notes


def test_few_problems_are_never_clear(tmp_path: Path):
    a = made_run(tmp_path / "a", {name: [1.0] for name in "vwxyz"})
    b = made_run(tmp_path / "b", {name: [9.0] for name in "vwxyz"})
    found = compare_runs(a, b)
    assert {entry.verdict for entry in found.rows} == {"unclear"}
    assert any("fewer than 6" in note for note in found.notes)


def test_the_solved_are_compared_over_those_that_both_solved(tmp_path: Path):
    a = made_run(tmp_path / "a", {"p": [2.0], "q": [None], "r": [3.0]})
    b = made_run(tmp_path / "b", {"p": [4.0], "q": [9.0], "r": [None]})
    solved = row(compare_runs(a, b), "speedup_solved")
    assert solved.problems == 1
    assert solved.a and solved.b and (solved.a.value, solved.b.value) == pytest.approx((2, 4))


def test_it_follows_the_best_so_far_call_by_call(pair: tuple[Path, Path]):
    found = compare_runs(*pair)
    followed = [entry for entry in found.by_call if entry.figure == "speedup_kept"]
    assert [entry.call for entry in followed] == [1, 2, 3, 4, 5]
    assert followed[-1].difference == row(found, "speedup_kept").difference
    # The first calls of the pair are the same drafts, so they differ by nothing.
    assert followed[0].verdict == "unclear"


def test_first_calls_are_compared_as_if_the_runs_had_ended_there(tmp_path: Path):
    long, short = random_results(8, 6, gain=1.5, seed=3), random_results(8, 6, gain=1.2, seed=4)
    a, b = made_run(tmp_path / "a", long), made_run(tmp_path / "b", short)
    early = compare_runs(a, b, calls=2)
    cut = compare_runs(
        made_run(tmp_path / "a2", {name: calls[:2] for name, calls in long.items()}),
        made_run(tmp_path / "b2", {name: calls[:2] for name, calls in short.items()}),
    )
    assert early.rows == cut.rows
    assert early.calls == 2


def test_a_budget_that_ended_early_by_the_same_limit_counts_missing_calls_as_nothing(
    tmp_path: Path,
):
    limits: dict[str, object] = {"budget_usd": 1}
    a = made_run(tmp_path / "a", {"p": [2.0], "q": [1.5]}, budget=3, limits=limits)
    b = made_run(tmp_path / "b", {"p": [2.0, 2.1, 2.2], "q": [1.5]}, budget=3, limits=limits)
    found = compare_runs(a, b)
    assert found.calls == 3
    assert "A made 2 of 6 calls (budget_usd=1); what was not called counts as no kernel" in (
        found.notes
    )


def test_a_limit_that_ended_nothing_is_no_difference(tmp_path: Path):
    results: dict[str, list] = {"p": [2.0, 2.1], "q": [1.5, None]}
    a = made_run(tmp_path / "a", results, limits={"budget_usd": 9.0})
    b = made_run(tmp_path / "b", results)
    assert {entry.verdict for entry in compare_runs(a, b).rows} <= {"unclear", "unknown"}
    ended = made_run(
        tmp_path / "c", {"p": [2.0], "q": [1.5, None]}, budget=2, limits={"budget_usd": 0.1}
    )
    with pytest.raises(UsageError, match="limits differs"):
        compare_runs(ended, b)


def test_mixed_profilers_and_versions_of_torch_are_told(tmp_path: Path):
    other = profile().model_dump() | {"rung": "ncu"}
    a = made_run(tmp_path / "a", {"p": [2.0]})
    b = made_run(tmp_path / "b", {"p": [2.0]}, profile=other)
    for run, version in ((a, "2.9.0"), (b, "2.13.0")):
        (run / "environment.json").write_text(json.dumps({"packages": {"torch": version}}))
    notes = " ".join(compare_runs(a, b).notes)
    assert "different profilers (A: cpu; B: ncu)" in notes
    assert "torch 2.9.0 in A and of torch 2.13.0 in B" in notes


@pytest.mark.parametrize(
    ("setting", "value", "told"),
    [
        ("device", "NVIDIA H200", "device differs.*NVIDIA H200"),
        ("precision", "tf32", "precision differs.*tf32"),
        ("protocol", "kernelbench", "protocol differs.*kernelbench"),
        ("size_class", "gpu", "size class differs.*gpu"),
        ("problem_hash", "fedcba9876543210", "the text of p is not the same"),
    ],
)
def test_runs_made_otherwise_are_refused(tmp_path: Path, setting: str, value: str, told: str):
    a = made_run(tmp_path / "a", {"p": [2.0]})
    b = made_run(tmp_path / "b", {"p": [2.0]}, **{setting: value})
    with pytest.raises(UsageError, match=told):
        compare_runs(a, b)


def test_a_run_of_two_models_is_refused(tmp_path: Path):
    mixed = write_run(tmp_path / "a", [turn(0), turn(1, model="openai/gpt-5")])
    with pytest.raises(UsageError, match="mixes model"):
        compare_runs(mixed, made_run(tmp_path / "b", {"p": [2.0]}))


def test_the_command_prints_a_table(pair: tuple[Path, Path]):
    done = command(MODULE, *pair)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("A: sample, offline/tuner (rule-based kernel writer, not a language")
    [kept] = [line for line in lines if line.startswith("geometric mean speedup, at least 1")]
    assert kept.endswith(" B")
    assert sum(line[:1].isdigit() and line[1] == " " for line in lines) == 5


def test_the_command_prints_json_that_is_the_comparison(pair: tuple[Path, Path]):
    told = json.loads(command(MODULE, *pair, "--json").stdout)
    assert told == compare_runs(*pair).model_dump(mode="json")
    assert told["schema"] == 1


def test_other_problems_are_refused_until_one_asks_for_the_common_ones(tmp_path: Path):
    a = made_run(tmp_path / "a", {"p": [2.0], "q": [2.0]})
    b = made_run(tmp_path / "b", {"p": [2.0], "r": [2.0]})
    told = refused(MODULE, a, b)
    assert "only A has q; only B has r; --common compares the 1 that both have" in told
    done = command(MODULE, a, b, "--common")
    assert done.returncode == 0
    assert "left out: only A has q" in done.stdout


def test_problems_that_one_run_has_not_begun_are_not_forgotten(tmp_path: Path):
    a = made_run(tmp_path / "a", {"p": [2.0], "q": [None]})
    b = made_run(tmp_path / "b", {"p": [2.0]})
    config = b / "config.yaml"
    config.write_text(config.read_text().replace("- p\n", "- p\n- q\n"))
    assert "B has no turn yet of q" in refused(MODULE, a, b)


def test_other_budgets_and_unfinished_runs_are_refused(tmp_path: Path):
    a = made_run(tmp_path / "a", {"p": [2.0, 2.1, 2.2]})
    b = made_run(tmp_path / "b", {"p": [2.0, 2.1]})
    unfinished = made_run(tmp_path / "c", {"p": [2.0]}, budget=3)
    assert "A (a) has 3 calls a problem, B (b) has 2; compare at --calls 2" in refused(MODULE, a, b)
    told = refused(MODULE, a, unfinished)
    assert "B (c) has made 1 of 3 calls on p; finish it" in told
    assert command(MODULE, a, b, "--calls", 2).returncode == 0
    assert "has made 2 of 3 calls" in refused(MODULE, a, b, "--calls", 3)


@pytest.mark.slow
def test_what_can_not_be_compared_at_all_is_refused(tmp_path: Path):
    a = made_run(tmp_path / "runs" / "a", {"p": [2.0]})
    made_run(tmp_path / "runs" / "b", {"q": [2.0]})
    assert "are the same run" in refused(MODULE, a, a)
    assert "no problem in common" in refused(MODULE, a, tmp_path / "runs" / "b")
    assert "holds 2 runs (a, b); name one of them" in refused(MODULE, a, tmp_path / "runs")
    assert "there is no folder" in refused(MODULE, a, tmp_path / "nowhere")
    assert "--help" in refused(MODULE, a)
