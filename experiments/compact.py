"""python -m experiments.compact RUN OUT : a run small enough to commit, and still readable.

What comes out is a run directory with less in it: `turns.jsonl` without logs and raw profiles,
`config.yaml`, `environment.json`, the best kernels, and a README that says what it is. `load_runs`,
`agent.show`, `experiments.report` and `experiments.compare` read it like the run itself, and so
does `replay/` where the answers were kept.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from evaluator.command.command_line import serve

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from agent.record.turn import TurnRecord

KEPT_LINES = 12
"""Lines of a compiler's log or a traceback that stay; the record says how many went."""


def command(
    run: Annotated[Path, Argument(help="A run directory.")],
    out: Annotated[Path, Argument(help="The folder to make; it may not exist yet.")],
    kernels: Annotated[
        bool, Option("--kernels", help="Every kernel, for the diffs of kernel-refinery show.")
    ] = False,
    prompts: Annotated[bool, Option("--prompts", help="Every prompt.")] = False,
    answers: Annotated[
        bool, Option("--answers", help="Every answer: replay/OUT can give them again.")
    ] = False,
    problem: Annotated[
        list[str] | None, Option("--problem", metavar="ID", help="Only this one (repeatable).")
    ] = None,
) -> None:
    """Make the compact form of a run."""
    from problems.errors import UsageError

    if out.exists():
        raise UsageError(f"{out} exists; name a folder that does not, or remove it")
    parts = [
        name
        for name, wanted in (("kernels", kernels), ("prompts", prompts), ("completions", answers))
        if wanted
    ]
    make_compact(run, out, parts=parts, problems=problem or ())
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    typer.echo(f"{out}: {size / 1000:,.0f} kB", err=True)


def make_compact(
    run: Path,
    out: Path,
    *,
    parts: Sequence[str] = (),
    problems: Collection[str] = (),
) -> None:
    """Write the compact form of `run` to the new folder `out`.

    `parts`: folders of the run to keep, of `kernels`, `prompts`, `completions`. `problems`: keep
    only these; empty keeps all. Paths of the machine that the run was made on are written as `RUN`,
    `.` (where we stand) and `~`. Raises `UsageError` where `run` is not a run directory.
    """
    import json

    import yaml

    from agent.record.run_files import RunFiles
    from problems.errors import UsageError

    files = RunFiles(run)
    config = files.config()
    every = sorted(files.turns(), key=lambda turn: (turn.problem, turn.call))
    missing = sorted(set(problems) - {turn.problem for turn in every})
    if missing:
        names = ", ".join(missing)
        raise UsageError(f"{run} has no turn of {names}; `kernel-refinery show` lists it")
    turns = [turn for turn in every if not problems or turn.problem in problems]
    if not turns:
        raise UsageError(f"{run} holds no turn yet; start or resume that run first")
    clean = _Cleaner(run)
    out.mkdir(parents=True)
    lines = [clean(compact_turn(turn).model_dump_json()) + "\n" for turn in turns]
    (out / "turns.jsonl").write_text("".join(lines), encoding="utf-8")
    settings = {**config.model_dump(mode="json"), "output": out.name}
    if problems:
        settings["problems"] = sorted(problems)
    (out / "config.yaml").write_text(clean(yaml.safe_dump(settings, sort_keys=False)))
    environment = json.dumps(files.environment(), indent=2)
    (out / "environment.json").write_text(clean(environment) + "\n")
    for part in ("best", "confirmations", *parts):
        kept = {_stem(turn, part) for turn in turns}
        for file in sorted(f for f in (run / part).glob("*") if f.stem in kept):
            target = out / part / file.name
            target.parent.mkdir(exist_ok=True)
            target.write_text(clean(file.read_text(encoding="utf-8")), encoding="utf-8")
    (out / "README.md").write_text(_readme(out, turns, parts), encoding="utf-8")


def compact_turn(turn: TurnRecord) -> TurnRecord:
    """The same turn with its logs cut short and without seeds and raw profiler figures."""
    evaluation = turn.evaluation.model_copy(
        update={"detail": _cut(turn.evaluation.detail), "seeds": ()}
    )
    if evaluation.build is not None:
        build = evaluation.build.model_copy(update={"log": _cut(evaluation.build.log)})
        evaluation = evaluation.model_copy(update={"build": build})
    profile = turn.profile
    if profile is not None:
        shares = tuple(kernel.model_copy(update={"metrics": {}}) for kernel in profile.kernels)
        profile = profile.model_copy(update={"kernels": shares[:4]})
    return turn.model_copy(update={"evaluation": evaluation, "profile": profile})


def _stem(turn: TurnRecord, part: str) -> str | None:
    """The name, without its suffix, of a turn's file in one of a run's folders."""
    return {
        "best": turn.problem,
        "confirmations": turn.problem,
        "kernels": turn.candidate,
        "prompts": turn.prompt,
        "completions": turn.completion,
    }[part]


def _cut(text: str) -> str:
    """The first lines: in a build log the first error, in a traceback what was being done."""
    lines = text.splitlines()
    if len(lines) <= KEPT_LINES:
        return text
    return "\n".join([*lines[:KEPT_LINES], f"({len(lines) - KEPT_LINES} more lines, not kept)"])


class _Cleaner:
    """Takes the paths of this machine out of a text."""

    def __init__(self, run: Path) -> None:
        places = {
            str(run): "RUN",
            str(run.resolve()): "RUN",
            str(Path.cwd()): ".",
            str(Path.home()): "~",
        }
        # The longest first: a run lies below where we stand, and that may lie below home.
        self._places = sorted(places.items(), key=lambda place: -len(place[0]))

    def __call__(self, text: str) -> str:
        for path, name in self._places:
            if len(path) > 1:
                text = text.replace(path, name)
        # The folder of a relay may lie anywhere; its last part is name enough.
        return re.sub(r"\brelay//[^\s\"']*/([^\s\"'/]+)", r"relay/\1", text)


def _readme(out: Path, turns: Sequence[TurnRecord], parts: Sequence[str]) -> str:
    from experiments.analysis.label import model_label, policy_label

    first = turns[0]
    model = f"{policy_label(first.strategy, first.feedback)} with {model_label(first.model)}"
    problems = len({turn.problem for turn in turns})
    kept = ", ".join(("the best kernels", *(f"all {part}" for part in parts)))
    replay = (
        f"- `kernel-refinery run -m replay/{out.name}` gives the recorded answers again\n"
        if "completions" in parts
        else ""
    )
    return (
        f"# {out.name}\n\n"
        f"A recorded run of Kernel Refinery, made compact: {model}; {problems} problems,"
        f" {len(turns)} turns, {first.backend} on {first.device}, {first.precision}. Kept: every"
        f" turn's record (long logs cut), {kept}. Versions are in `environment.json`, settings in"
        f" `config.yaml`.\n\n"
        f"- `kernel-refinery show {out.name}` prints it turn by turn\n"
        f"- `kernel-refinery report {out.name}` sums it up\n"
        f"{replay}"
    )


if __name__ == "__main__":
    sys.exit(serve(command, "python -m experiments.compact"))
