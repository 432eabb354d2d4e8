"""A real HTTP server on loopback that speaks the OpenAI protocol as it is told to."""

import json
import threading
from collections import deque
from collections.abc import Callable
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
    whole: bool = True
    """The body is sent as it is, also where a stream was asked for."""
    kind: str = "application/json"
    midway: tuple[str, Callable[[], None]] | None = None
    """A stream waits for this call once it has sent so much of the answer's text."""


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
    body |= {"usage": usage} if usage else {}
    return Reply(body=json.dumps(body).encode(), whole=False)


def events(answered: dict, *, usage: bool, finish: bool = True, letters: int = 7) -> list[bytes]:
    """The same answer as a stream sends it, so many letters at a time."""
    deltas: list[tuple[dict, str | None]] = []
    for choice in answered["choices"]:
        message = dict(choice["message"])
        text = message.pop("content") or ""
        deltas = [(message, None)]
        pieces = [text[i : i + letters] for i in range(0, len(text), letters)]
        deltas += [({"content": piece}, None) for piece in pieces]
        deltas += [({}, choice["finish_reason"])] if finish else []
    head = {key: answered[key] for key in ("id", "created", "model")}
    chunks = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        for delta, reason in deltas
    ]
    if usage and "usage" in answered:
        chunks.append({**head, "choices": [], "usage": answered["usage"]})
    lines = [json.dumps({**chunk, "object": "chat.completion.chunk"}) for chunk in chunks]
    return [f"data: {line}\n\n".encode() for line in [*lines, "[DONE]"]]


def refusal(status: int, message: str = "no", code: str | None = None, **headers: str) -> Reply:
    body = json.dumps({"error": {"message": message, "type": "x", "code": code}}).encode()
    return Reply(status, body, {k.replace("_", "-"): v for k, v in headers.items()})


def text_of(sent: list[bytes]) -> str:
    """What events hold of an answer's text."""
    chunks = [json.loads(event[len(b"data: ") :]) for event in sent]
    return "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)


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
                asked = json.loads(self.rfile.read(length))
                owner.requests.append(asked)
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
                body, kind, sent = reply.body, reply.kind, []
                if asked.get("stream") and not reply.whole:
                    usage = asked.get("stream_options", {}).get("include_usage", False)
                    sent = events(json.loads(body), usage=usage)
                    body, kind = b"".join(sent), "text/event-stream"
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                if reply.midway is not None:
                    until, call = reply.midway
                    begun = next(i for i in range(len(sent)) if until in text_of(sent[:i]))
                    self.wfile.write(b"".join(sent[:begun]))
                    call()
                    body = b"".join(sent[begun:])
                self.wfile.write(body[: len(body) // 2] if reply.cut else body)
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
