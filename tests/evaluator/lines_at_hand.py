"""A process to ask over several lines: `python -m tests.evaluator.lines_at_hand FD`."""

from __future__ import annotations

import sys

from evaluator.ipc.switchboard import serve_lines
from tests.evaluator.service_at_hand import answer

if __name__ == "__main__":
    serve_lines(int(sys.argv[1]), answer)
