"""The state machine's shape, and what it must not do behind our back."""

import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import get_type_hints

from agent.loop.nodes import TurnState, TurnUpdate

ROOT = Path(__file__).parents[3]


def test_an_update_can_only_name_what_the_state_has() -> None:
    # LangGraph ignores an unknown key without a word.
    state, update = get_type_hints(TurnState), get_type_hints(TurnUpdate)
    assert {key: state[key] for key in update} == update


def test_inherited_tracing_uploads_nothing(tmp_path: Path) -> None:
    asked: list[str] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        do_GET = do_PATCH = do_POST  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        inherited = {
            "LANGSMITH_TRACING": "true",
            "LANGSMITH_TRACING_V2": "true",
            "LANGCHAIN_TRACING_V2": "true",
            "LANGSMITH_ENDPOINT": address,
            "LANGCHAIN_ENDPOINT": address,
            "LANGSMITH_API_KEY": "none",
        }
        script = (
            "from pathlib import Path\nfrom tests.agent.crash_lab import run_job\n"
            f"run_job(Path({str(tmp_path)!r}))\n"
            "import langsmith.utils\nassert not langsmith.utils.tracing_is_enabled()\n"
        )
        environment = {**os.environ, **inherited}
        subprocess.run(
            [sys.executable, "-c", script], cwd=ROOT, env=environment, check=True, timeout=120
        )
        server.shutdown()
        thread.join()
    assert asked == []
    assert len((tmp_path / "run/turns.jsonl").read_text().splitlines()) == 6
