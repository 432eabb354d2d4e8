"""`relay/FOLDER`: each prompt becomes a file, and a person or a program writes the answer file.

`<problem>-<sample>-<turn>.prompt.md` appears whole; `<problem>-<sample>-<turn>.answer.md` is
waited for. An answer counts once its file has stopped changing, so it may be written in place;
writing it under another name and renaming it is safer still.

With `wait=0` nothing is waited for: a command writes the prompts that are due, takes the answers
that are there, and ends.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from agent.llm.failure import (
    AnswerAwaitedError,
    ModelInterruptedError,
    ModelRefusedError,
    ModelUnavailableError,
)
from agent.record.completion import (
    Completion,
    CompletionRequest,
    ModelClient,
    Tell,
    Usage,
    apart,
    estimated_tokens,
    unheard,
)
from agent.record.durable import write_durably
from problems.errors import UsageError


def relay_client(name: str, stop: threading.Event) -> ModelClient:
    """The client that waits for a person or a program that answers through the folder `name`.

    Raises `UsageError` where that folder can't be written.
    """
    folder = Path(name)
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not there.is_dir():
        raise UsageError(f"{there} is no folder to relay through; name another one")
    if not os.access(there, os.W_OK | os.X_OK):
        raise UsageError(f"the relay folder {there} can't be written; chmod u+wx {there}")
    return RelayClient(folder, stop)


class RelayClient:
    """Writes prompts and waits for answers. Tokens are estimated from characters; it costs nothing
    that this program knows of."""

    def __init__(
        self, folder: Path, stop: threading.Event, *, poll_s: float = 0.25, settle_s: float = 1.0
    ) -> None:
        """`settle_s`: an answer that has not changed for so long is whole."""
        self._folder = folder
        self._stop = stop
        self._poll_s = poll_s
        self._settle_s = settle_s

    def complete(
        self, request: CompletionRequest, tell: Tell = unheard, so_far: Tell = unheard
    ) -> Completion:
        """Write the prompt and wait for the answer.

        An answer that is there already counts if it lies beside this very prompt: so a resumed
        run goes on. Raises `ModelRefusedError` where it belongs to another prompt,
        `AnswerAwaitedError` where none is there after `wait` seconds, `ModelUnavailableError` after
        `timeout` seconds, `ModelInterruptedError` on stop.
        """
        began = time.monotonic()
        stem = self._folder / f"{request.problem}-{request.sample}-{request.turn}"
        prompt_path = stem.with_name(f"{stem.name}.prompt.md")
        answer_path = stem.with_name(f"{stem.name}.answer.md")
        prompt = "\n\n".join(message.content for message in request.messages)
        if not prompt_path.exists() or prompt_path.read_bytes() != prompt.encode():
            if answer_path.exists():
                raise ModelRefusedError(
                    f"{answer_path} answers another prompt; relay through an empty folder, or"
                    " remove it"
                )
            write_durably(prompt_path, prompt)
        wait_s, timeout_s = (_seconds(request, name) for name in ("wait", "timeout"))
        if wait_s is None and not answer_path.exists():
            tell(f"read {prompt_path} and write the answer to {answer_path}")
        said = self._wait_for(answer_path, wait_s, timeout_s)
        text, reasoning = apart(said.lstrip("\n"))
        usage = Usage(
            prompt_tokens=estimated_tokens([prompt]),
            completion_tokens=estimated_tokens([said]),
            cost_usd=0.0,
        )
        return Completion(
            text=text,
            reasoning=reasoning,
            model_asked=request.model,
            model_answered="relay",
            usage=usage,
            seconds=time.monotonic() - began,
        )

    def _wait_for(self, path: Path, wait_s: float | None, timeout_s: float | None) -> str:
        began = time.monotonic()
        while True:
            waited_s, unchanged_s = time.monotonic() - began, _unchanged_s(path)
            if unchanged_s is not None and unchanged_s >= self._settle_s:
                return path.read_text(encoding="utf-8", errors="replace")
            if wait_s is not None and unchanged_s is None and waited_s >= wait_s:
                raise AnswerAwaitedError(str(path))
            if timeout_s is not None and waited_s > timeout_s:
                raise ModelUnavailableError(f"no {path} within {timeout_s:g} s")
            if self._stop.wait(self._poll_s):
                raise ModelInterruptedError(f"stopped while waiting for {path}")


def _seconds(request: CompletionRequest, name: str) -> float | None:
    value = request.arguments.get(name)
    return None if value is None else float(value)


def _unchanged_s(path: Path) -> float | None:
    """For how long nothing was written to the file; None where nothing is in it."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    # A time ahead of our clock is another machine's, and as good as an old one.
    return abs(time.time() - found.st_mtime) if found.st_size else None
