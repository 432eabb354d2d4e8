from collections.abc import Callable

import pytest
import typer

from agent.record.durable import StoreError
from evaluator.command.command_line import INTERRUPTED, USAGE_ERROR, print_lines, serve
from evaluator.errors import DeviceError
from problems.errors import UsageError


def command_that(error: BaseException | None, code: int = 0) -> Callable[[], None]:
    def run() -> None:
        if error is not None:
            raise error
        raise typer.Exit(code)

    return run


@pytest.mark.parametrize("code", [0, 1, 2, 130])
def test_the_exit_code_of_a_command_is_returned(code: int) -> None:
    assert serve(command_that(None, code), "x", []) == code


@pytest.mark.parametrize(
    "error",
    [UsageError("two\nlines"), DeviceError("two\nlines"), StoreError("two\nlines")],
)
def test_mistakes_and_failures_are_one_line(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    assert serve(command_that(error), "x", []) == USAGE_ERROR
    assert capsys.readouterr() == ("", "error: two lines\n")


def test_an_interruption_has_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert serve(command_that(KeyboardInterrupt()), "x", []) == INTERRUPTED


def test_a_fault_of_ours_is_shown_whole_and_is_no_verdict(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert serve(command_that(ZeroDivisionError("oh")), "x", []) == USAGE_ERROR
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" in err
    assert "ZeroDivisionError: oh" in err


def test_lines_are_never_cut_nor_read_as_markup(capsys: pytest.CaptureFixture[str]) -> None:
    line = "[bold] " + "x" * 300
    print_lines([("bold", line)])
    print_lines([("", "there")], stderr=True)
    assert capsys.readouterr() == (line + "\n", "there\n")
