"""A candidate's file as a module of this process."""

from __future__ import annotations

import linecache
import sys
import types
from pathlib import Path

from evaluator.worker.steps import SourceText

FILE = "candidate.py"


def import_candidate(source: str, text: SourceText) -> types.ModuleType:
    """Run the file; `text`: where Python finds its text. Raises what the file raises."""
    if text != "none":
        show_source(source)
    path = Path.cwd() / FILE if text == "file" else Path(FILE)
    if text == "file":
        path.write_text(source)
    module = types.ModuleType("candidate")
    module.__file__ = FILE
    sys.modules["candidate"] = module
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module


def show_source(source: str) -> None:
    """Let Python find the source's lines, for tracebacks and what compiles functions."""
    linecache.cache[FILE] = (len(source), None, source.splitlines(True), FILE)
