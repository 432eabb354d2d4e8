"""`relay/FOLDER`: each prompt becomes a file, and a person or a program writes the answer file.

`<problem>-<sample>-<turn>.prompt.md` appears whole; `<problem>-<sample>-<turn>.answer.md` is
waited for. An answer counts once its file has stopped changing, so it may be written in place;
writing it under another name and renaming it is safer still.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from agent.llm.failure import ModelInterruptedError, ModelRefusedError, ModelUnavailableError
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

    Raises `UsageError` where the folder isn't there or can't be written.
    """
    folder = Path(name)
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder} to relay through; mkdir -p {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"the relay folder {folder} can't be written; chmod u+wx {folder}")
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
        `ModelUnavailableError` after `timeout` seconds, `ModelInterruptedError` on stop.
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
        if not answer_path.exists():
            tell(f"read {prompt_path} and write the answer to {answer_path}")
        timeout = request.arguments.get("timeout")
        said = self._wait_for(answer_path, None if timeout is None else float(timeout))
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

    def _wait_for(self, path: Path, timeout_s: float | None) -> str:
        began = since = time.monotonic()
        before: tuple[int, int] | None = None
        while True:
            now, seen = time.monotonic(), _size_and_time(path)
            if seen != before:
                before, since = seen, now
            elif seen is not None and seen[0] > 0 and now - since >= self._settle_s:
                return path.read_text(encoding="utf-8", errors="replace")
            if timeout_s is not None and now - began > timeout_s:
                raise ModelUnavailableError(f"no {path} within {timeout_s:g} s")
            if self._stop.wait(self._poll_s):
                raise ModelInterruptedError(f"stopped while waiting for {path}")


def _size_and_time(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns
