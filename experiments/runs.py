"""Runs as tables: one row a turn, read straight from `turns.jsonl`.

A run is a run directory, or the compact form of one that `experiments.compact` makes: a folder
with `turns.jsonl`, `config.yaml` and `environment.json`. Runs and studies that are packed as
`NAME.tar.xz` are unpacked when they are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.record.archive import unpacked
from agent.record.completion import CHARACTERS_PER_TOKEN
from agent.record.run_files import READ
from problems.errors import UsageError
from problems.plain_file import insist_on_plain_files

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1
FILE = "turns.jsonl"
LIMITS = ("budget_usd", "budget_tokens", "budget_seconds", "budget_device_seconds")
"""Settings besides the number of calls that may end a problem."""

_LEVEL = re.compile(r"level_?(\d+)")


def load_runs(path: Path | str | Sequence[Path | str]) -> pd.DataFrame:
    """Read runs: a run directory, a folder of them (up to two levels down), or several of either.

    One row a turn, in the order run, problem, call. Absent text is empty, an absent number is NaN.

    - which run: `run` (the folder's name), `path`, `strategy`, `feedback`, `model` (of a forked run
      the last two are its own, also for turns that it took over), `model_answered`, `temperature`,
      `run_seed`, `backend`, `device`, `precision`, `protocol`, `size_class`, `budget` (calls a
      problem; NaN: not recorded), `limits` (what else may end a problem, such as `budget_usd=2.0`)
    - which turn: `suite`, `problem`, `problem_hash`, `level` (0: a lone file), `category`,
      `sample`, `turn`, `call`, `candidate`, `parent`, `plan`, `finish_reason`, `created`
    - what became of it: `status`, `reason`, `message`, `weights`, `provenance`, `verdict`,
      `latency_us`, `speedup`, `speedup_low`, `speedup_high` (over eager, with its interval),
      `eager_flags` (`fp32, TF32 off`; empty: on a CPU, or not known),
      `compile_speedup`, `compile_low` (over torch.compile; at most 1 where the verdict is not
      `faster`), `sol_fraction`, `sol_score`,
      `error_ratio`,
      `memory_bytes`, `eager_memory_bytes` (peak memory of the candidate's process and of eager's),
      `bottleneck`, `rung`,
      `confirmed_speedup`, `confirmed_low`, `confirmed_high`, `confirmed_verdict`,
      `confirmed_compile_speedup`, `confirmed_compile_low`, `confirmed_sol_fraction` (of the second
      verdict on a best kernel that held; absent: there is none), `struck` (it did not hold),
      `best_so_far` (speedup of the problem's best correct kernel up to this call; NaN: none yet)
    - what it took: `prompt_tokens`, `completion_tokens`, `reasoning_tokens`, `cached_tokens`,
      `tokens` (prompt and completion; like those before NaN where nobody counted),
      `answer_characters` (to within 3, of relayed answers, whose tokens are estimates; else 0),
      `cost_usd` (NaN: unknown), `seconds_model`, `seconds_build`,
      `seconds_judge`, `seconds_profile`, `seconds_wall` (their sum),
      `seconds_device` (lies within: judged calls, and all of profiling, which has the device to
      itself), `headers`, `build_cached`, `attempts`, `repeated`,
      `judged_with`, `profiled_with` (the turn with an identical kernel whose evaluation or profile
      was taken over, `problem.sample.turn`; empty: its own)

    Raises `UsageError` where there is no run, or a line is not a turn; a last line that a kill
    tore is passed over.
    """
    import pandas as pd

    given = [path] if isinstance(path, Path | str) else list(path)
    found = [folder for entry in given for folder in run_folders(Path(entry))]
    folders = list({folder.resolve(): folder for folder in found}.values())
    names = _names(folders)
    rows: list[dict[str, Any]] = []
    for folder in folders:
        turns = list(_rows(folder))
        if not turns:
            raise UsageError(f"{folder} holds no turn yet; start or resume that run first")
        rows += _in_order(names[folder], folder, turns)
    return pd.DataFrame.from_records(rows)


def run_folders(path: Path) -> list[Path]:
    """The runs at `path` or up to two levels below, by name. Raises `UsageError` for none."""
    path = path.parent if path.name == FILE else unpacked(path)
    if not path.is_dir():
        raise UsageError(f"there is no folder {path}; name a run directory, or a folder of them")
    found = {file.parent for depth in ("", "*/", "*/*/") for file in path.glob(depth + FILE)}
    for folder in {path} & found or found:
        insist_on_plain_files(folder, READ)
    if path in found:
        return [path]
    if not found:
        raise UsageError(
            f"{path} holds no run (no {FILE}); name a folder that kernel-refinery run made"
        )
    return sorted(found)


def read_records(folder: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The line number and the record of each turn, as written; a torn last line is passed over."""
    file = folder / FILE
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                record = json.loads(line)
            except ValueError as error:
                if not line.endswith(b"\n"):
                    return
                raise UsageError(
                    f"{file} line {number} is not JSON ({error}); remove that line"
                ) from error
            if not isinstance(record, dict):
                raise UsageError(f"{file} line {number} is not a turn; remove that line")
            yield number, record


def _rows(folder: Path) -> Iterator[dict[str, Any]]:
    settings, forked = _settings(folder), _forked(folder)
    confirmations = read_confirmations(folder)
    seen = set()
    for number, record in read_records(folder):
        schema = record.get("schema")
        if schema != SCHEMA:
            raise UsageError(
                f"{folder} line {number} has schema {schema!r}, and this version reads {SCHEMA};"
                " read it with the version that wrote it"
            )
        try:
            key = (record["problem"], record["sample"], record["turn"])
            if key not in seen:
                seen.add(key)
                confirmed = _confirmed(confirmations.get(key))
                yield {**settings, **_row(record), **forked, **confirmed}
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{folder} line {number} is not a whole turn ({error}); remove that line"
            ) from error


def read_confirmations(folder: Path) -> dict[tuple[str, int, int], dict[str, Any]]:
    """Second verdicts by problem, sample and turn; a torn last line is passed over.

    Raises `UsageError`.
    """
    found = {}
    for path in sorted(folder.glob("confirmations/*.jsonl")):
        for line in path.read_bytes().splitlines(keepends=True):
            try:
                loaded = json.loads(line)
                if not (loaded.get("chooses") and _holds(loaded["evaluation"])):
                    found[loaded["problem"], loaded["sample"], loaded["turn"]] = loaded
            except (ValueError, KeyError, TypeError) as error:
                if line.endswith(b"\n"):
                    raise UsageError(f"{path} is no list of confirmations ({error})") from error
    return found


def _confirmed(loaded: Mapping[str, Any] | None) -> dict[str, Any]:
    evaluation = loaded["evaluation"] if loaded else {}
    holds = _holds(evaluation)
    timing = (evaluation.get("timing") or {}) if holds else {}
    return {
        "confirmed_speedup": _number(timing.get("speedup")),
        "confirmed_low": _number(timing.get("speedup_low")),
        "confirmed_high": _number(timing.get("speedup_high")),
        "confirmed_verdict": timing.get("verdict", ""),
        "confirmed_compile_speedup": _number(_compiled(timing).get("speedup")),
        "confirmed_compile_low": _sure_low(_compiled(timing)),
        "confirmed_sol_fraction": _number(timing.get("sol_fraction")),
        "struck": bool(evaluation) and not holds,
    }


def _holds(evaluation: Mapping[str, Any]) -> bool:
    return evaluation.get("status") == "correct" and not evaluation.get("findings")


def _compiled(timing: Mapping[str, Any]) -> Mapping[str, Any]:
    """The candidate against torch.compile; empty: not measured."""
    against: Mapping[str, Any] = timing.get("baselines", {}).get("compile", {})
    return against


def _sure_low(timing: Mapping[str, Any]) -> float:
    low = _number(timing.get("speedup_low"))
    return low if timing.get("verdict") == "faster" else min(low, 1.0)


def _row(record: Mapping[str, Any]) -> dict[str, Any]:
    evaluation, usage, seconds = record["evaluation"], record["usage"], record["seconds"]
    # What the judge's own checks hold against a kernel is no speed of its.
    timing = {} if evaluation.get("findings") else evaluation.get("timing") or {}
    profile = record.get("profile") or {}
    build = evaluation.get("build") or {}
    memory = evaluation.get("memory") or {}
    level = _LEVEL.match(record["problem"])
    wall = sum(float(seconds[part]) for part in ("model", "build", "judge", "profile"))
    return {
        **{name: record[name] for name in ("strategy", "feedback", "model")},
        "model_answered": record.get("model_answered", ""),
        "temperature": _number(record.get("temperature")),
        "run_seed": record["run_seed"],
        "backend": record.get("backend", ""),
        **{name: record[name] for name in ("device", "precision", "protocol", "size_class")},
        "suite": record["suite"],
        "problem": record["problem"],
        "problem_hash": record["problem_hash"],
        "level": int(level[1]) if level else 0,
        "category": record.get("category") or "",
        **{name: int(record[name]) for name in ("sample", "turn", "call")},
        "candidate": record["candidate"] or "",
        "parent": record.get("parent") or "",
        "plan": record.get("plan", ""),
        "finish_reason": record["finish_reason"],
        "created": record.get("created", ""),
        "status": evaluation["status"],
        "reason": evaluation.get("reason", ""),
        "message": evaluation.get("message", "").partition("\n")[0],
        "weights": evaluation.get("weights", ""),
        "provenance": evaluation.get("provenance") or "",
        "verdict": timing.get("verdict", ""),
        **{
            name: _number(timing.get(name))
            for name in ("latency_us", "speedup", "speedup_low", "speedup_high")
        },
        "eager_flags": timing.get("baselines", {}).get("eager", {}).get("flags", ""),
        "compile_speedup": _number(_compiled(timing).get("speedup")),
        "compile_low": _sure_low(_compiled(timing)),
        "sol_fraction": _number(timing.get("sol_fraction")),
        "sol_score": _number(timing.get("sol_score")),
        "error_ratio": _number((evaluation.get("correctness") or {}).get("error_ratio")),
        "memory_bytes": _number(memory.get("candidate_bytes")),
        "eager_memory_bytes": _number(memory.get("baseline_bytes")),
        "bottleneck": profile.get("bottleneck", ""),
        "rung": profile.get("rung", ""),
        **{
            name: _count(usage[name])
            for name in ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens")
        },
        "tokens": _count(usage["prompt_tokens"]) + _count(usage["completion_tokens"]),
        "answer_characters": CHARACTERS_PER_TOKEN * _count(usage["completion_tokens"])
        if record["model"].startswith("relay/")
        else 0,
        "cost_usd": _number(usage["cost_usd"]),
        **{
            f"seconds_{part}": float(seconds[part])
            for part in ("model", "build", "judge", "profile")
        },
        "seconds_wall": wall,
        "seconds_device": float(seconds["device"]) + float(seconds["profile"]),
        "headers": build.get("headers", ""),
        "build_cached": bool(build.get("cached", False)),
        "attempts": int(record.get("attempts", 1)),
        "repeated": int(record.get("repeated", 0)),
        **{name: record.get(name, "") for name in ("judged_with", "profiled_with")},
    }


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _count(value: int | None) -> float:
    return float("nan") if value is None else int(value)


def run_config(folder: Path) -> dict[str, Any]:
    """A run's `config.yaml`; empty where it was not kept. Raises `UsageError`."""
    import yaml

    path = folder / "config.yaml"
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not YAML ({' '.join(str(error).split())})") from error
    if not isinstance(config, dict):
        raise UsageError(f"{path} holds no settings; restore it, or remove it")
    return config


def _settings(folder: Path) -> dict[str, Any]:
    """What only `config.yaml` knows."""
    config = run_config(folder)
    limits = [f"{key}={config[key]}" for key in LIMITS if config.get(key) is not None]
    return {"budget": _number(config.get("budget")), "limits": ", ".join(limits)}


def _forked(folder: Path) -> dict[str, Any]:
    """Of a forked run: what its own turns have counts for those that it took over as well."""
    config = run_config(folder)
    return {key: config[key] for key in ("feedback", "model")} if config.get("fork") else {}


def _in_order(run: str, folder: Path, turns: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """By problem, in the order in which they first appear, then by call; with `best_so_far`."""
    problems = {
        name: place for place, name in enumerate(dict.fromkeys(t["problem"] for t in turns))
    }
    best: dict[str, float] = {}
    for turn in sorted(turns, key=lambda turn: (problems[turn["problem"]], turn["call"])):
        problem, speedup = turn["problem"], turn["speedup"]
        if speedup > best.get(problem, 0.0):
            best[problem] = speedup
        so_far = best.get(problem, float("nan"))
        yield {"run": run, "path": str(folder), **turn, "best_so_far": so_far}


def _names(folders: Sequence[Path]) -> dict[Path, str]:
    """The folder's name; with its parent's where that is not enough to tell runs apart."""
    names = [folder.resolve().name for folder in folders]
    return {
        folder: name if names.count(name) == 1 else f"{folder.resolve().parent.name}/{name}"
        for folder, name in zip(folders, names, strict=True)
    }
