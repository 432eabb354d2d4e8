"""Reading files of /proc and /sys."""

from __future__ import annotations

import re
from pathlib import Path


def read_text(path: Path) -> str:
    """A file of /proc or /sys; empty where the kernel does not offer it."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def kilobyte_fields(file: Path) -> dict[str, int]:
    """In bytes, what `/proc/meminfo` or a process's `status` gives in kB."""
    lines = re.findall(r"^(\w+):\s+(\d+) kB$", read_text(file), re.MULTILINE)
    return {name: 1024 * int(kilobytes) for name, kilobytes in lines}
