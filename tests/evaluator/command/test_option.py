"""A setting is declared once; its option, its help and its arguments follow."""

from __future__ import annotations

import typer
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.command.command_line import serve
from evaluator.command.option import arguments_of, takes_options, validated
from evaluator.settings import BaselineName, JudgeOptions, Settings

seen: list[JudgeOptions] = []


@takes_options(JudgeOptions)
def command(
    given: dict[str, object],
    file: str,
    inputs: bool = typer.Option(False, "--inputs", help="This command's own."),
) -> None:
    assert file == "x"
    assert inputs or "inputs" not in given
    seen.append(validated(JudgeOptions, given))


def test_the_help_says_what_is_so_where_an_option_is_left_out(capsys) -> None:
    assert serve(command, "x", ["--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "--timing-seconds S Longest time spent on timing one kernel. [0.5]" in told
    assert "--audit / --no-audit" in told
    assert "--require-isolation available|strict" in told
    assert told.count("--inputs") == 1, "the command's own stands in for the setting's"


def test_a_wrong_value_is_one_line_that_names_the_option(capsys) -> None:
    assert serve(command, "x", ["x", "--timing-seconds", "0"]) == 2
    assert capsys.readouterr().err == "error: --timing-seconds: '0' should be greater than 0\n"
    assert serve(command, "x", ["x", "--require-isolation", "none"]) == 2
    assert capsys.readouterr().err.startswith("error: --require-isolation: 'none' should be")


chosen = st.builds(
    Settings,
    precision=st.sampled_from(["fp32", "bf16"]),
    protocol=st.sampled_from(["refinery", "verified"]),
    baselines=st.sampled_from([(), ("compile",), ("compile", "cuda_graph")]).map(
        lambda more: (BaselineName.EAGER, *map(BaselineName, more))
    ),
    timing_seconds=st.sampled_from([0.25, 2.0, 30.0]),
    audit=st.sampled_from(["auto", "always", "never"]),
    require=st.sampled_from(["any", "custom"]),
    isolation=st.sampled_from(["available", "strict"]),
)


@given(chosen)
@settings(max_examples=50)
def test_arguments_bring_about_the_settings_that_they_are_made_from(asked: Settings) -> None:
    assert serve(command, "x", ["x", *arguments_of(asked, JudgeOptions)]) == 0
    found = seen.pop()
    for name, value in found:
        made = {BaselineName.EAGER, *value} if name == "baselines" else value
        wanted = getattr(asked, name)
        assert made == (set(wanted) if name == "baselines" else wanted)
