import io

import pytest

from agent.record.events import ProblemFinished, ProblemStarted, Profiled, Waiting
from agent.record.result import Spent, Stop
from agent.view.display import PlainLines, open_display, view_mode
from problems.errors import UsageError
from tests.agent.made_records import A, config, incorrect, problem_result, turn, turn_events
from tests.evaluator.made_evaluations import correct


def test_plain_lines_are_one_a_turn() -> None:
    stream = io.StringIO()
    view = PlainLines(config(), stream)
    view.notice(ProblemStarted(A, 0, None, Spent()))
    for number, evaluation in enumerate([incorrect(), correct(2.0)]):
        for event in turn_events(A, number, evaluation, best=number == 1):
            view.notice(event)
    first, second = stream.getvalue().splitlines()
    assert first.split() == [
        *(A, "1/10", "turn", "0", "incorrect", "wrong_values:"),
        *("3", "of", "8", "elements", "differ,", "$0.012"),
    ]
    assert "2/10" in second
    assert "2.00x [1.98, 2.02] over eager, faster, 812 us, 61 % of the bound" in second
    assert second.endswith("(best so far)")


def test_plain_lines_tell_of_trouble_and_of_going_on() -> None:
    stream = io.StringIO()
    view = PlainLines(config(), stream)
    view.notice(ProblemStarted(A, 3, None, Spent()))
    view.notice(Waiting(A, 0, 3, "busy"))
    view.notice(Profiled(A, 0, 3, "no counters"))
    last = turn(3, incorrect())
    view.notice(ProblemFinished(A, problem_result(None, last, 4, Stop.ERROR, "gone")))
    told = [line.partition("  ")[2].strip() for line in stream.getvalue().splitlines()]
    assert told == [
        "goes on after 3 recorded turns",
        "waiting: busy",
        "no profile: no counters",
        "ended: gone",
    ]


@pytest.mark.parametrize("mode", ["rich", "plain", "none"])
def test_nothing_of_the_view_is_on_stdout(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    with open_display(view_mode(mode), config()) as display:
        display.notice(ProblemStarted(A, 0, None, Spent()))
        for event in turn_events(A, 0, correct(2.0), best=True):
            display.notice(event)
        display.say("hello")
        display.close()
    out, err = capsys.readouterr()
    assert out == ""
    assert "hello" in err
    assert ("2.00x" in err) == (mode != "none")


def test_a_pipe_gets_lines_and_an_unknown_mode_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert view_mode(None) == "plain"
    with pytest.raises(UsageError, match="--display: 'fancy' is not one of rich, plain, none"):
        view_mode("fancy")
