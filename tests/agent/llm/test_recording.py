import json
from pathlib import Path

import pytest

from agent.config.run_config import RunConfig
from agent.llm.recording import RecordedAnswer, load_recording
from agent.record.completion import Completion, CompletionRequest, Message, Usage
from agent.record.store import open_store
from problems.errors import UsageError


def made_run(path: Path, *turns: tuple[str, int, int, str]) -> Path:
    """A run directory with stored completions, written by the run store itself."""
    with open_store(RunConfig(output=path)) as store:
        for problem, sample, turn, text in turns:
            request = CompletionRequest(
                model="openai/gpt-4o",
                messages=(Message(role="user", content="Write."),),
                problem=problem,
                sample=sample,
                turn=turn,
            )
            answer = Completion(
                text=text,
                reasoning="because",
                finish_reason="length",
                model_asked="openai/gpt-4o",
                model_answered="gpt-4o-2024-08-06",
                usage=Usage(prompt_tokens=10, completion_tokens=5, cost_usd=0.25),
                seconds=2.0,
            )
            store.save_completion(request, store.save_prompt("Write."), answer)
    return path


def test_lines_are_a_recording_and_come_back_as_written(tmp_path):
    answers = [
        RecordedAnswer(problem="p", turn=1, text="a\u2028b\n```"),
        RecordedAnswer(problem="p", turn=0, text="é", usage=Usage(prompt_tokens=3)),
    ]
    path = tmp_path / "made.jsonl"
    noted = [{**answer.model_dump(), "note": "by hand"} for answer in answers]
    path.write_text("".join(f"{json.dumps(each)}\n" for each in noted) + "\n")
    assert list(load_recording(path).answers.values()) == answers


@pytest.mark.parametrize(
    "text", ["nonsense\n", "[1]\n", '{"problem": "p", "turn": "x", "text": ""}']
)
def test_a_broken_line_is_named(tmp_path, text):
    path = tmp_path / "broken.jsonl"
    path.write_text('{"problem": "p", "turn": 0, "text": "t"}\n' + text)
    with pytest.raises(UsageError, match=r"broken\.jsonl, line 2: "):
        load_recording(path)


def test_what_is_no_recording(tmp_path):
    with pytest.raises(UsageError, match="there is no recording"):
        load_recording(tmp_path / "gone")
    with pytest.raises(UsageError, match="not a run directory"):
        load_recording(tmp_path)
    binary = tmp_path / "b.jsonl"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="can't be read"):
        load_recording(binary)
    broken = made_run(tmp_path / "run", ("p", 0, 0, "a"))
    (broken / "completions" / "zzz.json").write_text("{}")
    with pytest.raises(UsageError, match="not a stored completion"):
        load_recording(broken)
