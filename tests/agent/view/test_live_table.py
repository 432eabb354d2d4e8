import io

import pytest
from rich.console import Console

from agent.record.events import (
    JudgingAgain,
    ProblemFinished,
    ProblemStarted,
    Profiled,
    TurnStarted,
    Waiting,
)
from agent.record.result import Spent, Stop
from agent.record.turn import TurnSeconds
from agent.view.live_table import LiveTable
from tests.agent.made_records import A, B, config, incorrect, problem_result, turn, turn_events
from tests.evaluator.made_evaluations import correct


def shown(table: LiveTable) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=table.console.width, height=30, color_system=None).print(table)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def live(*problems: str, height: int = 30, width: int = 100, **settings: object) -> LiveTable:
    console = Console(file=io.StringIO(), width=width, height=height, color_system=None)
    return LiveTable(config(*problems, **settings), console)


def row_of(table: LiveTable, problem: str) -> str:
    (line,) = [line for line in shown(table) if line.startswith(problem[:16])]
    return line


def test_rows_follow_the_events() -> None:
    table = live()
    assert row_of(table, A).split() == [A, "0/10", "queued"]
    table.notice(ProblemStarted(A, 0, None, Spent()))
    phases = []
    for event in turn_events(A, 0, incorrect(), best=False):
        table.notice(event)
        phases.append(row_of(table, A).split())
    assert phases[0][-2:] == ["model", "0s"]
    assert phases[1][-2:] == ["judge", "0s"]
    assert "incorrect" in phases[2]
    assert "profile" not in phases[2]  # an incorrect kernel isn't profiled
    assert "none yet" in row_of(table, A)
    for event in turn_events(A, 1, correct(2.0), best=True)[:3]:
        table.notice(event)
    assert "profile" in row_of(table, A)
    table.notice(turn_events(A, 1, correct(2.0), best=True)[3])
    line = row_of(table, A)
    for part in ("2/10", "correct", "2.00x [1.98, 2.02]", "61 %", "$0.025"):
        assert part in line
    best, last = turn(1, correct(2.0)), turn(2, incorrect())
    table.notice(ProblemFinished(A, problem_result(best, last, 3)))
    assert row_of(table, A).endswith("done")
    assert "2.00x [1.98, 2.02]" in row_of(table, A)


def test_samples_side_by_side_never_count_backwards() -> None:
    table = live(strategy="sample", feedback="none")
    table.notice(ProblemStarted(A, 0, None, Spent()))
    for sample in (1, 0):
        table.notice(TurnStarted(A, sample, 0, sample))
    assert "2/10" in row_of(table, A)


@pytest.mark.parametrize("width", [80, 100])
def test_a_row_fits_the_terminal_and_keeps_its_figures(width: int) -> None:
    table = live(width=width)
    table.notice(ProblemStarted(B, 0, None, Spent()))
    for event in turn_events(B, 9, correct(12.4, low=12.1, high=12.6), best=True):
        table.notice(event)
    table.notice(JudgingAgain(B))
    assert all(len(line) <= width for line in shown(table))
    for part in (B[:16], "10/10", "12.4x [12.1, 12.6]", "61 %", "$0.123", "confirm 0s"):
        assert part in row_of(table, B)


def test_the_time_is_that_of_the_summary() -> None:
    """What the turns took, not the time since the start: while one is made, too."""
    table = live()
    spent = Spent(calls=1, seconds=TurnSeconds(model=30.0, judge=12.0))
    table.notice(ProblemStarted(A, 1, None, spent))
    table.notice(TurnStarted(A, 0, 1, 1))
    assert " 0:42 model 0s" in row_of(table, A)
    ended = problem_result(None, turn(0, incorrect()), 1).model_copy(update={"spent": spent})
    table.notice(ProblemFinished(A, ended))
    assert " 0:42 done" in row_of(table, A)


def test_a_run_that_goes_on_shows_what_was_found() -> None:
    table = live()
    table.notice(ProblemStarted(A, 4, turn(2, correct(3.0)), Spent(cost_usd=0.5)))
    assert "4/10" in row_of(table, A)
    assert "3.00x [2.97, 3.03]" in row_of(table, A)
    assert "$0.500" in row_of(table, A)


def test_more_problems_than_lines_show_those_at_work() -> None:
    names = [f"level1_{number}_thing" for number in range(40)]
    table = live(*names, height=16)
    table.notice(ProblemStarted(names[35], 0, None, Spent()))
    table.notice(ProblemStarted(names[20], 0, None, Spent()))
    table.notice(
        ProblemFinished(
            names[20], problem_result(None, turn(9, incorrect(), problem=names[20]), 10)
        )
    )
    lines = shown(table)
    assert len(lines) <= 16
    text = "\n".join(lines)
    assert names[35] in text
    assert names[20] in text
    assert "more problems; 1 of all done" in text


def test_what_goes_wrong_is_said_above_the_table() -> None:
    table = live()
    waits = f"read a[/red]/{'long/' * 30}prompt.md"
    table.notice(Waiting(A, 0, 0, waits))
    table.notice(Profiled(A, 0, 0, "no counters"))
    last = turn(0, incorrect())
    table.notice(ProblemFinished(A, problem_result(None, last, 1, Stop.ERROR, "the key is wrong")))
    assert isinstance(table.console.file, io.StringIO)
    said = table.console.file.getvalue()
    for text in (waits, "no profile: no counters", "the key is wrong"):
        assert text in said
    assert row_of(table, A).endswith("error")


def test_the_tuner_is_labelled() -> None:
    note = "offline/tuner is a rule-based kernel writer, not a language model"
    assert note in shown(live())
    assert note not in shown(live(model="openai/x"))
