"""A real HTTP server on loopback that speaks the OpenAI protocol as it is told to."""

import json
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    stall: bool = False
    """Nothing is sent; with `cut`, nothing after half of the body."""
    cut: bool = False
    """The connection ends after half of the body."""


def answer(
    text: str | None = "hello",
    *,
    model: str = "test-model-2026",
    finish_reason: str = "stop",
    choices: list | None = None,
    usage: dict | None = None,
    **message: object,
) -> Reply:
    choice = {
        "index": 0,
        "finish_reason": finish_reason,
        "message": {"role": "assistant", "content": text, **message},
    }
    body = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [choice] if choices is None else choices,
    }
    if usage is None:
        usage = {
            "prompt_tokens": 1000,
            "completion_tokens": 500,
            "total_tokens": 1500,
            "completion_tokens_details": {"reasoning_tokens": 300},
            "prompt_tokens_details": {"cached_tokens": 200},
        }
    return Reply(body=json.dumps({**body, **({"usage": usage} if usage else {})}).encode())


def refusal(status: int, message: str = "no", code: str | None = None, **headers: str) -> Reply:
    body = json.dumps({"error": {"message": message, "type": "x", "code": code}}).encode()
    return Reply(status, body, {k.replace("_", "-"): v for k, v in headers.items()})


class ProviderServer:
    """Gives its replies one after the other, the last one for ever."""

    def __init__(self) -> None:
        self.replies: deque[Reply] = deque()
        self.requests: list[dict] = []
        self.headers: list[dict[str, str]] = []
        self.released = threading.Event()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                owner.requests.append(json.loads(self.rfile.read(length)))
                owner.headers.append(dict(self.headers))
                replies = owner.replies
                reply = replies.popleft() if len(replies) > 1 else replies[0]
                if reply.stall and not reply.cut:
                    owner.released.wait(30)
                    self.close_connection = True
                    return
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body[: len(reply.body) // 2] if reply.cut else reply.body)
                if reply.stall:
                    self.wfile.flush()
                    owner.released.wait(30)
                self.close_connection = reply.cut

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def will(self, *replies: Reply) -> None:
        self.replies.extend(replies)

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
