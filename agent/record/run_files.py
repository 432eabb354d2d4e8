"""A run directory as others read it: where everything lies, without a lock or repairs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from agent.config.run_config import RunConfig
from agent.record.completion import Completion
from agent.record.confirmation import Confirmation
from agent.record.result import RunResult
from agent.record.turn import TurnRecord
from agent.record.turn_log import read_turns
from evaluator.record import Record
from evaluator.rival import Rival
from problems.errors import UsageError, first_line

READ = (
    *("turns.jsonl", "config.yaml", "environment.json", "result.json"),
    *("completions", "confirmations", "kernels", "profiles", "prompts", "rivals"),
)
"""What is read of a run directory."""
_FORMER = (
    *("examples", "hardware", "keep_profiles", "prompts", "prompts_hash"),
    *("stop_early", "stop_near_sol"),
)
"""Options that the frozen recordings name and that are gone."""


class StoredCompletion(Record):
    """`completions/<hash>.json`: an answer, where it belongs, and what was asked."""

    problem: str
    sample: int
    turn: int
    prompt: str
    """Hash: `prompts/<hash>.txt`, the text of the one user message."""
    temperature: float | None
    seed: int | None
    arguments: dict[str, str | int | float | bool | None]
    completion: Completion


@contextmanager
def reading(path: Path, remedy: str) -> Iterator[None]:
    """Raises `UsageError` where what this file holds can't be read."""
    try:
        yield
    except (OSError, ValueError, TypeError, RecursionError, yaml.YAMLError) as error:
        raise UsageError(f"{path} can't be read ({first_line(error)}); {remedy}") from error


class RunFiles:
    """Reads `runs/<name>/`. Every hash is that of a `TurnRecord`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def config_path(self) -> Path:
        """The resolved configuration; a folder without it is not a run directory."""
        return self.path / "config.yaml"

    def config(self) -> RunConfig:
        """The configuration that the run was made with. Raises `UsageError`."""
        remedy = "it is damaged or of another version: start over with --redo, or choose another -o"
        with reading(self.config_path, remedy):
            if not self.config_path.exists():
                raise UsageError(
                    f"{self.path} is not a run directory (it has no config.yaml); name a folder"
                    " that kernel-refinery run made"
                )
            settings = yaml.safe_load(self.config_path.read_text())
            if isinstance(settings, dict):
                settings = {key: settings[key] for key in settings if key not in _FORMER}
            return RunConfig.model_validate(settings)

    def environment(self) -> dict[str, object]:
        """Versions, device and layers of isolation; empty where nothing was written."""
        path = self.path / "environment.json"
        with reading(path, "restore it, or remove it"):
            return dict(json.loads(path.read_text())) if path.exists() else {}

    def result(self) -> RunResult | None:
        """What the last command came to; None while it is running or after it was killed."""
        path = self.path / "result.json"
        with reading(path, "restore it, or remove it"):
            return RunResult.model_validate_json(path.read_text()) if path.exists() else None

    def turns(self) -> Iterator[TurnRecord]:
        return read_turns(self.path)

    def kernel_path(self, candidate: str) -> Path:
        return self.path / "kernels" / f"{candidate}.py"

    def kernel(self, candidate: str) -> str:
        return self.kernel_path(candidate).read_text(encoding="utf-8")

    def prompt_path(self, prompt: str) -> Path:
        return self.path / "prompts" / f"{prompt}.txt"

    def prompt(self, prompt: str) -> str:
        return self.prompt_path(prompt).read_text(encoding="utf-8")

    def completion_path(self, completion: str) -> Path:
        return self.path / "completions" / f"{completion}.json"

    def completion(self, completion: str) -> StoredCompletion:
        text = self.completion_path(completion).read_text(encoding="utf-8")
        return StoredCompletion.model_validate_json(text)

    def profile_folder(self, candidate: str) -> Path:
        return self.path / "profiles" / candidate

    def confirmations(self, problem: str) -> list[Confirmation]:
        """Second verdicts on a problem's best kernels, in the order written; a torn last line is
        left out."""
        path = self.confirmations_path(problem)
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        return [Confirmation.model_validate_json(line) for line in lines if line.endswith(b"\n")]

    def confirmations_path(self, problem: str) -> Path:
        return self.path / "confirmations" / f"{problem}.jsonl"

    def rival(self, problem: str) -> Rival | None:
        """What PyTorch itself does with a problem; None where it was not measured."""
        path = self.rival_path(problem)
        return Rival.model_validate_json(path.read_text()) if path.exists() else None

    def rival_path(self, problem: str) -> Path:
        return self.path / "rivals" / f"{problem}.json"

    def best_path(self, problem: str) -> Path:
        """Where a problem's best kernel lies, once it has one: a file to import and use."""
        return self.path / "best" / f"{problem}.py"

    def proof_path(self, problem: str) -> Path:
        return self.best_path(problem).with_suffix(".json")
