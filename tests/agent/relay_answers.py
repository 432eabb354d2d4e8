"""Somebody at the other end of a relay: the fastest model to test with."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def answering(folder: Path, *texts: str) -> Iterator[list[str]]:
    """Answers the prompts in `folder` with one of `texts` after the other, the last one for ever;
    yields the prompts' names as they come."""
    done, answered = threading.Event(), list[str]()

    def answer() -> None:
        while not done.wait(0.1):
            for prompt in sorted(folder.glob("*.prompt.md")):
                reply = prompt.with_name(prompt.name.replace(".prompt.", ".answer."))
                if not reply.exists():
                    text = texts[min(len(answered), len(texts) - 1)]
                    answered.append(prompt.name)
                    reply.write_text(text)

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield answered
    finally:
        done.set()
        thread.join()
