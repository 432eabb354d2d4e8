"""`kernel-refinery desk`: a relay's waiting prompts, each in a folder for one who answers it.

A folder's name is random, so that it says neither problem nor turn nor, in a study, the cell. Which
prompt lies where is written beside the prompts, where those who answer do not look.
"""

from __future__ import annotations

import re
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from agent.prompt.answer import extract
from agent.record.durable import append_durably, write_durably
from agent.record.store import text_hash
from evaluator.command.command_line import serve
from evaluator.record import Record
from problems.errors import UsageError
from problems.function import ANY_NAME

LEDGER = "desk.jsonl"
_PROMPT, _ANSWER = ".prompt.md", ".answer.md"


class HandedOut(Record):
    """A prompt on a desk."""

    prompt: str
    """Its file, seen from the relay's folder."""
    hash: str
    """Of the prompt."""
    folder: Path


def command(
    relay: Annotated[Path, typer.Argument(help="The folder after relay/ in --model.")],
    desk: Annotated[
        Path, typer.Argument(help="Gets a folder for each prompt: prompt.md, and then answer.md.")
    ],
) -> None:
    """Take back the answers that are on the desk, and put the prompts there that wait for one.

    Exit codes: 0 done; 1 an answer was not taken; 2 wrong usage.
    """
    if not relay.is_dir():
        raise UsageError(f"there is no folder {relay}; --model relay/{relay} writes prompts to it")
    if desk.resolve().is_relative_to(relay.resolve()):
        raise UsageError(f"{desk} lies in {relay}, where all prompts can be seen; choose another")
    ledger = list(_ledger(relay))
    outcomes = [(each, take_back(relay, each)) for each in ledger if _is_answered(relay, each)]
    refused = [f"{each.folder / 'answer.md'}: {why}" for each, why in outcomes if why]
    for line in refused:
        typer.echo(f"not taken: {line}", err=True)
    waiting = [path for path in sorted(relay.rglob(f"*{_PROMPT}")) if not _answer_to(path).exists()]
    hand_out(relay, desk, waiting, ledger)
    taken = len(outcomes) - len(refused)
    typer.echo(f"answers taken: {taken}; prompts that wait in {desk}: {len(waiting)}")
    raise typer.Exit(1 if refused else 0)


def _ledger(relay: Path) -> Iterator[HandedOut]:
    path = relay / LEDGER
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            yield HandedOut.model_validate_json(line)
        except ValidationError:
            continue  # a kill tore it before its folder was made


def _answer_to(prompt: Path) -> Path:
    return prompt.with_name(prompt.name.removesuffix(_PROMPT) + _ANSWER)


def _is_answered(relay: Path, entry: HandedOut) -> bool:
    """And the answer was not taken before."""
    taken = _answer_to(relay / entry.prompt).exists()
    return not taken and (entry.folder / "answer.md").exists()


def take_back(relay: Path, entry: HandedOut) -> str:
    """Put an answer beside its prompt. Returns why not; empty: it is there."""
    prompt = relay / entry.prompt
    for path in (prompt, entry.folder / "prompt.md"):
        if not path.exists() or text_hash(path.read_text(encoding="utf-8")) != entry.hash:
            return f"{path} is not the prompt that was handed out"
    text = (entry.folder / "answer.md").read_text(encoding="utf-8", errors="replace")
    if not text.strip():
        return "it is empty"
    is_open = len(re.findall(r"^ *```", text, re.MULTILINE)) % 2 == 1
    asked = re.findall(r"^FUNCTION = [\"'](\w+)", prompt.read_text(encoding="utf-8"), re.MULTILINE)
    functions = (*asked, ANY_NAME) if asked else ()
    if is_open and extract(text, "stop", functions).source is None:
        return "it ends within its code"
    write_durably(_answer_to(prompt), text)
    return ""


def hand_out(relay: Path, desk: Path, prompts: list[Path], ledger: list[HandedOut]) -> None:
    """Put each prompt on the desk, once."""
    known = {(each.prompt, each.hash): each for each in ledger}
    for path in prompts:
        text = path.read_text(encoding="utf-8")
        prompt, content = str(path.relative_to(relay)), text_hash(text)
        entry = known.get((prompt, content))
        if entry is None:
            folder = desk.resolve() / secrets.token_hex(4)
            entry = HandedOut(prompt=prompt, hash=content, folder=folder)
            append_durably(relay / LEDGER, entry.model_dump_json())
        if not (entry.folder / "prompt.md").exists():
            write_durably(entry.folder / "prompt.md", text)


if __name__ == "__main__":
    sys.exit(serve(command, "python -m agent.desk"))
