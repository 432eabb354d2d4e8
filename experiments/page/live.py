"""The page of a run or study that goes on, served on loopback to the browsers of this machine."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from agent.record.run_files import RunFiles
from experiments.page.collection import Collected, collect
from experiments.page.page import live_page
from experiments.page.sources import Sources, read_trajectories
from experiments.page.turn_details import turn_block
from problems.errors import UsageError

HOST = "127.0.0.1"
REST = 3.0
"""Reading everything again takes at most a quarter of the time: so many times as long a rest."""


@dataclass
class LivePage:
    sources: Sources
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stamp: object = None
    _collected: Collected | None = None
    _text: str = ""
    _not_before: float = 0.0

    def page(self) -> tuple[str, str]:
        """The version and the JSON of `Page`. Raises `UsageError` where a run can't be read."""
        with self._lock:
            stamp = self.sources.stamp()
            if stamp != self._stamp and time.monotonic() >= self._not_before:
                began = time.monotonic()
                self._collected = collect(self.sources)
                self._text = self._collected.page.model_dump_json()
                self._stamp = stamp
                ended = time.monotonic()
                self._not_before = ended + REST * (ended - began)
            return hashlib.sha256(self._text.encode()).hexdigest()[:16], self._text

    def block(self, run: str, problem: str) -> str:
        """The JSON of a trajectory's details. Raises `KeyError` where there is no such.

        By the run's name: its place on the page changes when another run gets its first turn.
        """
        with self._lock:
            found = self._collected
        names = [entry.name for entry in found.page.runs] if found else []
        folder = dict(zip(names, found.folders if found else (), strict=True))[run]
        records = read_trajectories(folder)[problem]
        return turn_block(0, records, RunFiles(folder), {}).model_dump_json()


class LiveServer(ThreadingHTTPServer):
    """Serves one page on loopback. `port` 0 takes any free one."""

    daemon_threads = True

    def __init__(self, sources: Sources, port: int = 0) -> None:
        self.live = LivePage(sources)
        self.html, self.policy = live_page(sources.title)
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise UsageError(f"--port {port} can't be used ({error}); choose another") from error

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    server: LiveServer

    def do_GET(self) -> None:
        # A name that resolves to loopback must not let a page of somewhere else read ours.
        if self.headers.get("Host") not in (f"{HOST}:{self.server.server_port}",):
            return self._answer(403, "text/plain", "open the page by its address on loopback")
        address = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        try:
            match address.path:
                case "/":
                    self._answer(200, "text/html", self.server.html)
                case "/page":
                    self._page(query)
                case "/block":
                    text = self.server.live.block(query["run"], query["problem"])
                    self._answer(200, "application/json", text)
                case _:
                    self._answer(404, "text/plain", "there is no such page")
        except KeyError:
            self._answer(404, "text/plain", "there is no such turn")
        except UsageError as error:
            self._answer(503, "text/plain", str(error))

    def _page(self, query: Mapping[str, str]) -> None:
        version, text = self.server.live.page()
        if query.get("seen") == version:
            self._answer(204, "application/json", "")
        else:
            self._answer(200, "application/json", text, version)

    def _answer(self, code: int, kind: str, text: str, version: str = "") -> None:
        body = text.encode()
        self.send_response(code)
        headers = {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Content-Security-Policy": f"{self.server.policy}; frame-ancestors 'none'",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
            "X-Version": version,
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the terminal belongs to the run."""
