"""A request as the files that a compiler reads, named as PyTorch names them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from evaluator.builder.toolchain import STUBS
from evaluator.ipc.build_request import BuildRequest

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_FUNCTION = re.compile(r"[A-Za-z_]\w*(?:::\w+)*", re.ASCII)
_FILE_NAME = re.compile(r"[\w+][\w.+-]*", re.ASCII)
_HOST_SUFFIXES = (".cpp", ".cc", ".cxx", ".c++", ".c")
_DEVICE_SUFFIXES = (".cu",)
_LONGEST_NAME = 200
"""In characters; file systems end at 255."""
_DEEPEST = 16
"""Folders in one another."""
_RESERVED = ("root", "tmp", STUBS)


class BadRequestError(ValueError):
    """A request that no compiler need see; its text says why."""


@dataclass(frozen=True)
class Source:
    name: str
    content: str
    device: bool
    """True: for nvcc."""

    @property
    def file(self) -> str:
        """The name without its folders: what is made of it is beside those, and begins so."""
        return PurePosixPath(self.name).name


@dataclass(frozen=True)
class Sources:
    units: tuple[Source, ...]
    others: tuple[tuple[str, str], ...]
    """Name and content of files that units include."""
    folders: tuple[str, ...]
    """Those that are searched for them."""

    def write(self, folder: Path) -> None:
        every = [(unit.name, unit.content) for unit in self.units]
        for name, content in (*every, *self.others):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        for path in folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\r", "\\r").replace("\n", "\\n") + '"'


def _inline(request: BuildRequest) -> list[Source]:
    lines = ["#include <torch/extension.h>"] if request.implicit_headers else []
    lines += request.cpp_sources
    if request.functions:
        lines.append("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {")
        for name, doc in request.functions:
            if not _FUNCTION.fullmatch(name):
                raise BadRequestError(f"{name!r} in functions is not the name of a function")
            lines.append(f'm.def("{name}", torch::wrap_pybind_function({name}), {_literal(doc)});')
        lines.append("}")
    sources = [Source("main.cpp", "\n".join(lines) + "\n", device=False)]
    if request.cuda_sources:
        lines = ["#include <torch/types.h>", "#include <cuda.h>", "#include <cuda_runtime.h>"]
        lines = (lines if request.implicit_headers else []) + list(request.cuda_sources)
        sources.append(Source("cuda.cu", "\n".join(lines) + "\n", device=True))
    return sources


def arrange(request: BuildRequest) -> Sources:
    """The files of a request. Raises BadRequestError for names that cannot be."""
    if not _IDENTIFIER.fullmatch(request.name):
        raise BadRequestError(f"the extension's name {request.name!r} is not an identifier")
    if len(request.name) > _LONGEST_NAME:
        raise BadRequestError(f"the extension's name is longer than {_LONGEST_NAME} characters")
    units = [_unit(name, content) for name, content in request.files] or _inline(request)
    paths = [PurePosixPath(unit.name) for unit in units]
    paths += [PurePosixPath(name) for name, _ in request.included]
    for path in (*paths, *(PurePosixPath(name, "folder") for name in request.include_folders)):
        fits = 0 < len(path.parts) <= _DEEPEST and path.parts[0] not in _RESERVED
        if not fits or not all(
            _FILE_NAME.fullmatch(p) and len(p) <= _LONGEST_NAME for p in path.parts
        ):
            raise BadRequestError(f"the file name {str(path)!r} is not allowed")
    # As PyTorch names them, so that Ninja refuses the same.
    objects = [f"{Path(unit.file).stem}{'.cuda' * unit.device}.o" for unit in units]
    if twice := {each for each in objects if objects.count(each) > 1}:
        raise BadRequestError(f"multiple rules generate {min(twice)}")
    if len(set(paths)) != len(paths):
        raise BadRequestError("two files have the same name")
    if folders := {folder for path in paths for folder in path.parents}.intersection(paths):
        raise BadRequestError(f"{min(folders)} is the name of a file and of a folder")
    return Sources(tuple(units), request.included, request.include_folders)


def _unit(name: str, content: str) -> Source:
    suffix = PurePosixPath(name).suffix
    if suffix not in (*_HOST_SUFFIXES, *_DEVICE_SUFFIXES):
        known = ", ".join((*_HOST_SUFFIXES, *_DEVICE_SUFFIXES))
        raise BadRequestError(
            f"the name of a source, {name!r}, is not allowed: no {known} at its end"
        )
    return Source(name, content, suffix in _DEVICE_SUFFIXES)
