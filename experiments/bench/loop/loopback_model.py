"""A model on loopback: an HTTP server that speaks OpenAI's protocol and writes at a steady rate."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LETTERS_A_TOKEN = 4
"""The agent's rule of thumb, too."""


class LoopbackModel(AbstractContextManager["LoopbackModel", None]):
    """Streams one given answer after the other, whatever it is asked."""

    def __init__(self, answers: Iterator[str], tokens_per_second: float) -> None:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *words: object) -> None:
                pass

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                for event in owner._events():
                    self.wfile.write(f"data: {event}\n\n".encode())

        self._answers = answers
        self._tokens_per_second = tokens_per_second
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        self.address = f"http://127.0.0.1:{self._server.server_port}/v1"

    def _events(self) -> Iterator[str]:
        text = next(self._answers)
        starts = range(0, len(text), LETTERS_A_TOKEN)
        began = time.monotonic()
        for number, start in enumerate(starts, 1):
            due = began + number / self._tokens_per_second
            time.sleep(max(0.0, due - time.monotonic()))
            yield _chunk({"content": text[start : start + LETTERS_A_TOKEN]})
        yield _chunk({}, "stop")
        usage = {"prompt_tokens": 1000, "completion_tokens": len(starts)}
        yield json.dumps({"id": "x", "created": 1, "choices": [], "usage": usage})
        yield "[DONE]"

    def __exit__(self, *raised: object) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _chunk(delta: dict[str, str], finish_reason: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return json.dumps({"id": "x", "created": 1, "model": "loopback", "choices": [choice]})
