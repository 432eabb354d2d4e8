"""The page on a finished run: `python -m tests.mutation.result RUN.jsonl ... > RESULT.md`.

It is printed elsewhere and later than the run was made, so it is told what the run was made with.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from evaluator.evaluation import Status
from tests.mutation.argument import MEANINGS, Argument, read_arguments
from tests.mutation.judged import Judged, read
from tests.mutation.subject import CORPORA
from tests.mutation.summary import summary, wilson


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("run", type=Path)
    options.add_argument("--corpus", choices=CORPORA, default=CORPORA[0])
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--commit", required=True)
    options.add_argument("--made-with", required=True, help="versions and machine of the run")
    options.add_argument("--again-with", required=True, help="those of `survivors`")
    chosen = options.parse_args()
    records = list(read(chosen.run))
    known = {argument.id: argument for argument in read_arguments()}
    survivors = [r.id for r in records if r.kind and r.built and not r.killed]
    missing = [id for id in survivors if id not in known]
    if missing:
        raise SystemExit(f"no argument for {', '.join(missing)}")
    arguments = [known[id] for id in survivors]
    made = f"Commit {chosen.commit}, {chosen.made_with}, fp32."
    command = f"python -m tests.mutation.run --corpus {chosen.corpus} --seed {chosen.seed}"
    print(page(records, arguments, command, made, chosen.again_with))


def page(
    records: list[Judged], arguments: list[Argument], command: str, made: str, again_with: str
) -> str:
    """Conditions, totals, tables, and every survivor with its argument.

    `command`: that of the run; `made`: what it was made with, a sentence; `again_with`: what its
    survivors were judged again with.
    """
    limit = sum(record.kind is not None for record in records)
    lines = [
        "# Mutation check: result",
        "",
        f"{made} Made by `{command} --limit {limit}`; what each "
        "survivor was compared by is in `evidence.py`, the judgement on it in `arguments.json`. "
        "What did not build counts neither as killed nor as judged.",
        "",
        summary(records, [a.id for a in arguments if a.equivalent]),
        _in_use(records, arguments, again_with),
        "## Survivors",
        "",
    ]
    for kind, meaning in MEANINGS.items():
        group = [a for a in arguments if a.kind == kind]
        lines += [
            f"### {kind.capitalize()}: {len(group)}",
            "",
            f"{meaning[0].upper()}{meaning[1:]}.",
            "",
        ]
        for a in group:
            shown = a.shown.replace("`", "'")
            again = f"; with the usual timing: {a.usual}" if a.usual else ""
            what = f"`{a.id}` {a.subject}, {a.rule}: `{shown}`"
            lines.append(f"* {what}. {a.reason} ({a.evidence}{again})")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _in_use(records: list[Judged], arguments: list[Argument], again_with: str) -> str:
    """The share without what no input of the problem shows, and with survivors judged again."""
    equivalent = {a.id for a in arguments if a.equivalent}
    judged = [r for r in records if r.kind and r.built and r.id not in equivalent]
    killed, of = sum(r.killed for r in judged), len(judged)
    wrong = [a for a in arguments if not a.equivalent]
    unseen = sum(a.kind == "other inputs" for a in wrong)
    late = [a for a in wrong if a.usual != Status.CORRECT]
    still_unseen = unseen - sum(a.kind == "other inputs" for a in late)
    return (
        f"{unseen} survivors are wrong only on inputs that the problem practically never gives: "
        f"without them {_share(killed, of - unseen)}. The survivors that are no equivalents were "
        f"judged once more, with 2 seconds of timing as users give it ({again_with}): {len(late)} "
        f"were refused then. So {_share(killed + len(late), of)} in all; without the "
        f"{still_unseen} that no such input shows, {_share(killed + len(late), of - still_unseen)}."
        "\n"
    )


def _share(killed: int, of: int) -> str:
    low, high = wilson(killed, of)
    return f"{killed} of {of}, {killed / max(1, of):.2%} ({low:.2%} to {high:.2%})"


if __name__ == "__main__":
    main()
