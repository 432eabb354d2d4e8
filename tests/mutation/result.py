"""The page on a finished run: `python -m tests.mutation.result RUN.jsonl > RESULT.md`."""

from __future__ import annotations

import argparse
import platform
from pathlib import Path

import torch

from tests.mutation.argument import MEANINGS, Argument, read_arguments
from tests.mutation.judged import Judged, read
from tests.mutation.summary import summary, wilson


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("run", type=Path)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--commit", required=True)
    chosen = options.parse_args()
    records = list(read(chosen.run))
    known = {argument.id: argument for argument in read_arguments()}
    survivors = [r.id for r in records if r.kind and r.built and not r.killed]
    missing = [id for id in survivors if id not in known]
    if missing:
        raise SystemExit(f"no argument for {', '.join(missing)}")
    arguments = [known[id] for id in survivors]
    print(page(records, arguments, chosen.seed, chosen.commit))


def page(records: list[Judged], arguments: list[Argument], seed: int, commit: str) -> str:
    """Conditions, totals, tables, and every survivor with its argument."""
    lines = [
        "# Mutation check: result",
        "",
        f"Commit {commit}, seed {seed}, torch {torch.__version__}, Python "
        f"{platform.python_version()}, CPU, fp32. Made by `python -m tests.mutation.run --seed "
        f"{seed}`; what each survivor was compared by is in `evidence.py`, the judgement on it in "
        "`arguments.json`. What did not build counts neither as killed nor as judged.",
        "",
        summary(records, [a.id for a in arguments if a.equivalent]),
        _without_other_inputs(records, arguments),
        "## Survivors",
        "",
    ]
    for kind, meaning in MEANINGS.items():
        group = [a for a in arguments if a.kind == kind]
        lines += [f"### {kind.capitalize()}: {len(group)}", "", f"{meaning.capitalize()}.", ""]
        for a in group:
            shown = a.shown.replace("`", "'")
            lines.append(f"* `{a.id}` {a.subject}, {a.rule}: `{shown}`. {a.reason} ({a.evidence})")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _without_other_inputs(records: list[Judged], arguments: list[Argument]) -> str:
    """The same share where what no input of the problem can show is left aside, too."""
    apart = {a.id for a in arguments if a.equivalent or a.kind == "other inputs"}
    judged = [r for r in records if r.kind and r.built and r.id not in apart]
    killed = sum(r.killed for r in judged)
    low, high = wilson(killed, len(judged))
    return (
        "Without those that are wrong only on inputs that the problem practically never gives: "
        f"{killed} of {len(judged)}, {killed / max(1, len(judged)):.2%} "
        f"({low:.2%} to {high:.2%}).\n"
    )


if __name__ == "__main__":
    main()
