"""A worker's source files, and what they include of its own, as a request carries them."""

from __future__ import annotations

import os
import re
import sysconfig
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^/">\n][^">\n]*)[">]', re.MULTILINE)
_APART = "files"
"""Folder for files that are no neighbours of the sources."""


@dataclass(frozen=True)
class OwnFiles:
    """Names are relative to a folder that all have in common, so that each finds the others."""

    sources: tuple[tuple[str, str], ...]
    """Name and content."""
    included: tuple[tuple[str, str], ...]
    """The same of what else is included, and not compiled by itself."""
    folders: tuple[str, ...]
    """Where to search for what is included."""


def gather(sources: Iterable[Path], folders: Iterable[Path], texts: Sequence[str] = ()) -> OwnFiles:
    """`sources`, and what they and `texts` include from beside themselves or from `folders`.

    What a condition of the preprocessor would leave out is carried as well. Raises RuntimeError for
    a source that cannot be read.
    """
    # Not resolved: a link is a file at its own place.
    paths = list(dict.fromkeys(Path(os.path.abspath(source)) for source in sources))  # noqa: PTH100
    search = tuple(dict.fromkeys(Path(os.path.abspath(folder)) for folder in folders))  # noqa: PTH100
    found = {path: _read(path) for path in paths}
    waiting = [(text, search) for text in texts]
    waiting += [(content, (path.parent, *search)) for path, content in found.items()]
    used: set[Path] = set()
    while waiting:
        text, beside = waiting.pop()
        for mark, name in _INCLUDE.findall(text):
            for folder in beside if mark == '"' else search:
                header = Path(os.path.normpath(folder / name))
                if header in found or header.is_file():
                    used.add(folder)
                    if header not in found:
                        found[header] = _read(header)
                        waiting.append((found[header], (header.parent, *search)))
                    break
    needed = [folder for folder in search if folder in used]
    within = [*(path.parent for path in found), *needed]
    root = Path(os.path.commonpath(within)) if within else Path("/")
    place = Path(_APART if not paths or root == Path("/") else "")

    def named(path: Path) -> str:
        return (place / path.relative_to(root)).as_posix()

    return OwnFiles(
        sources=tuple((named(path), found[path]) for path in paths),
        included=tuple((named(path), text) for path, text in found.items() if path not in paths),
        folders=tuple(map(named, needed)),
    )


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise RuntimeError(f"cannot read {path}: {error}") from error


def split_folders(folders: Iterable[str]) -> tuple[list[Path], list[Path]]:
    """Folders of headers that belong to the worker, and those of the machine, which has them."""
    import torch

    homes = (os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH"))
    machines = [Path("/usr"), Path(torch.__file__).parent, Path(sysconfig.get_paths()["include"])]
    machines += [Path(home) for home in homes if home]
    own: list[Path] = []
    elsewhere: list[Path] = []
    for folder in map(Path, folders):
        shared = any(folder.resolve().is_relative_to(parent.resolve()) for parent in machines)
        (elsewhere if shared else own).append(folder)
    return own, elsewhere
