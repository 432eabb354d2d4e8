"""An extension's build directory in a worker: where PyTorch leaves the library that it built.

The builder hands a library over as sealed memory. That has a descriptor but no path, and PyTorch
resolves a path before it loads it. So the worker loads a copy of its own, in its scratch folder.
"""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path


def placed(library: Path, name: str, asked: object) -> Path:
    """Copies a library to `{folder}/{name}.so` and returns that path, which is absolute.

    `asked` is the caller's `build_directory`. PyTorch's default is used where it is empty, or is
    no folder that this process can write to. Another library of the same name goes to
    `{name}_v1.so` and so on, as in PyTorch: what is loaded already must not change.
    """
    from torch.utils.cpp_extension import _get_build_directory

    content = library.read_bytes()
    usable = asked and os.access(str(asked), os.W_OK | os.X_OK)
    folder = Path(str(asked) if usable else _get_build_directory(name, verbose=False)).absolute()
    versions = (f"{name}_v{number}.so" if number else f"{name}.so" for number in count())
    for path in map(folder.joinpath, versions):
        if not path.exists():
            path.write_bytes(content)
            return path
        if path.read_bytes() == content:
            return path
    raise AssertionError("there is no last version")
