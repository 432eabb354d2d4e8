"""Answers that were given once and can be given again: a run directory, or a file of lines.

A recording is a `.jsonl` file, one answer a line: `problem`, `sample`, `turn` and `text`; more
where it is known (`reasoning`, `finish_reason`, `model`, `usage`). Other keys are kept out of
the way, so that a recording may say whatever else it wants about itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.record.completion import Usage
from problems.errors import UsageError


class RecordedAnswer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)

    problem: str
    sample: int = 0
    turn: int
    text: str
    reasoning: str = ""
    finish_reason: str = "stop"
    model: str = ""
    """The model that answered then."""
    usage: Usage = Field(default_factory=Usage)
    """As it was billed then."""


class Recording:
    """Recorded answers by (problem, sample, turn)."""

    def __init__(self, path: Path, answers: Iterable[RecordedAnswer]) -> None:
        self.path = path
        self.answers = {(each.problem, each.sample, each.turn): each for each in answers}

    def missing(self, problem: str, sample: int, turn: int) -> str:
        """One line about an answer that isn't here: what there is instead."""
        turns = sorted((s, t) for p, s, t in self.answers if p == problem)
        if not turns:
            held = ", ".join(sorted({p for p, _, _ in self.answers})[:4]) or "nothing"
            return f"{self.path} holds no answer for {problem} (it holds {held})"
        held = ", ".join(f"{s}/{t}" for s, t in turns[:8]) + (", ..." if len(turns) > 8 else "")
        return (
            f"{self.path} holds no answer for {problem}, sample {sample}, turn {turn} (of that"
            f" problem it holds sample/turn {held}); lower --budget, or ask another model"
        )


def load_recording(path: Path) -> Recording:
    """Read a run directory or a `.jsonl` recording. Raises `UsageError`."""
    if not path.exists():
        raise UsageError(f"there is no recording {path}; name a run directory or a .jsonl file")
    if path.is_dir():
        if (path / "completions").is_dir():
            return Recording(path, _from_run(path))
        if (path / "kernels").is_dir():
            return Recording(path, _from_kernels(path))
        raise UsageError(
            f"{path} is not a run directory (it has no completions/ and no kernels/); name one, or"
            " a .jsonl recording"
        )
    return Recording(path, _from_lines(path))


def _from_run(path: Path) -> Iterator[RecordedAnswer]:
    from agent.record.run_files import RunFiles

    files = RunFiles(path)
    for file in sorted((path / "completions").glob("*.json")):
        try:
            stored = files.completion(file.stem)
        except ValidationError as error:
            raise UsageError(f"{file} is not a stored completion: {_first_line(error)}") from error
        answer = stored.completion
        yield RecordedAnswer(
            problem=stored.problem,
            sample=stored.sample,
            turn=stored.turn,
            text=answer.text,
            reasoning=answer.reasoning,
            finish_reason=answer.finish_reason,
            model=answer.model_answered,
            usage=answer.usage,
        )


def _from_kernels(path: Path) -> Iterator[RecordedAnswer]:
    """Of a compact run without answers: its kernels, each as the one block of an answer."""
    from agent.record.run_files import RunFiles

    files = RunFiles(path)
    for turn in files.turns():
        source = files.kernel(turn.candidate) if turn.candidate is not None else None
        yield RecordedAnswer(
            problem=turn.problem,
            sample=turn.sample,
            turn=turn.turn,
            text="no kernel" if source is None else f"```python\n{source}\n```",
            model=turn.model_answered,
        )


def _from_lines(path: Path) -> Iterator[RecordedAnswer]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} can't be read ({error}); name a .jsonl recording") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield RecordedAnswer.model_validate_json(line)
        except ValidationError as error:
            raise UsageError(f"{path}, line {number}: {_first_line(error)}") from error


def _first_line(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else first["msg"]
