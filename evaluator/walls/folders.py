"""Which folders a confined process needs, and which it must not see."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/proc",
    "/sys", "/dev", "/nix", "/gnu",
)  # fmt: skip
"""Programs, libraries and settings of the system, and the kernel's own file systems."""
RUNNING = ("/run/opengl-driver", "/run/current-system", "/run/nvidia-persistenced")
"""What is needed of /run, whose other sockets lead to services of the system."""
_OURS = Path(__file__).resolve().parents[2]
PACKAGES = (_OURS / "evaluator", _OURS / "problems")
"""What a confined process needs of ours. Not the whole checkout: runs, tests and other candidates'
kernels lie there."""
_LINKER = Path("/etc/ld.so.conf")
_NAMING = ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH")


def interpreter_folders() -> list[Path]:
    """The interpreter, its packages and our own code; none lies in another one of the list."""
    wanted = {
        Path(sys.prefix),
        Path(sys.base_prefix),
        *PACKAGES,
        *(Path(p) for p in sys.path if p and Path(p).is_dir() and Path(p).resolve() != _OURS),
    }
    return _outermost(wanted)


def named_folders() -> list[Path]:
    """Folders of libraries that the environment or the linker names: CUDA may lie anywhere."""
    texts = (os.environ.get(name, "") for name in _NAMING)
    names = [part for text in texts for part in text.split(os.pathsep) if part]
    for file in (_LINKER, *_LINKER.with_suffix(".conf.d").glob("*.conf")):
        if file.is_file():
            names += [line for line in file.read_text().splitlines() if line.startswith("/")]
    return _outermost(path for path in map(Path, names) if path.is_dir())


def homes() -> list[Path]:
    found = {Path("/root"), Path("/home")}
    try:
        own = Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        own = Path("/")
    if len(own.parts) > 1 and not any(own.is_relative_to(folder) for folder in SYSTEM):
        found.add(own)
    return _outermost(path for path in found if path.is_dir())


def readable() -> list[Path]:
    system = (Path(name) for name in (*SYSTEM, *RUNNING))
    return [p for p in (*system, *interpreter_folders(), *named_folders()) if p.exists()]


def is_within_reach(path: Path) -> bool:
    """Whether a confined process of our own user can read what lies there."""
    place, reach = path.resolve(), readable()
    secret = any(place.is_relative_to(each) for each in withheld(reach))
    return not secret and any(place.is_relative_to(each.resolve()) for each in reach)


def withheld(readable: Iterable[Path]) -> list[Path]:
    """What of ours a confined process must not read, although it lies in one of these folders: the
    problems with their hidden sizes, and in a checkout runs, tests and the history of all that."""
    around = {folder.resolve() for folder in readable}
    found = [path for path in (_OURS / "problems").glob("level*") if around & {*path.parents}]
    if around & {_OURS, *_OURS.parents}:
        needed = [*PACKAGES, Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()]
        found += [
            path for path in _OURS.iterdir() if not any(n.is_relative_to(path) for n in needed)
        ]
    return found


def without(folder: Path, hidden: Collection[Path]) -> Iterator[Path]:
    """The folder; or where some of it is hidden, all else in it."""
    folder = folder.resolve()
    if not any(folder in path.parents for path in hidden):
        yield folder
        return
    for entry in folder.iterdir():
        # What a link leads to has its own place in the list, or none.
        if entry not in hidden and not entry.is_symlink():
            yield from without(entry, hidden)


def _outermost(paths: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for path in sorted({p.resolve() for p in paths}):
        if not any(path.is_relative_to(other) for other in found):
            found.append(path)
    return found
