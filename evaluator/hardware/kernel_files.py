"""Reading files of /proc and /sys."""

from __future__ import annotations

from pathlib import Path


def read_text(path: Path) -> str:
    """A file of /proc or /sys; empty where the kernel does not offer it."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
