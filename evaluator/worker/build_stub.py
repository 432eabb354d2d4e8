"""What `load_inline` and `load` are in a worker: they ask the trusted builder for a library.

The signatures, the errors and the place of the library are PyTorch's. Nothing is compiled or
printed here.
"""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import ModuleType

from evaluator.ipc.build_request import BuildOutcome, BuildRequest
from evaluator.ipc.wire import Channel, Kind
from evaluator.worker.own_files import gather, split_folders

Send = Callable[[BuildRequest], BuildOutcome]

_DEVICE_SUFFIXES = (".cu", ".cuh")


def over(channel: Channel) -> Send:
    """Asks the builder at the other end; a library comes as a descriptor of this process."""

    def send(request: BuildRequest) -> BuildOutcome:
        channel.send(Kind.BUILD, request.encode())
        message = channel.receive()
        outcome = BuildOutcome.decode(message.payload)
        if message.fds:
            return replace(outcome, library=f"/proc/self/fd/{message.fds[0]}")
        return outcome

    return send


def install(send: Send) -> None:
    """Replaces `load_inline` and `load` of `torch.utils.cpp_extension`.

    `send` hands a request to the builder and waits for the outcome, whose `library` may be any path
    that this process can open, `/proc/self/fd/N` included.
    """
    import torch.utils.cpp_extension as cpp_extension

    one_at_a_time = threading.Lock()

    def built(
        request: BuildRequest, build_directory: object, *, is_python_module: bool
    ) -> ModuleType | str:
        with one_at_a_time:  # candidates build in several threads, and `send` is for one
            outcome = send(request)
            if not outcome.ok:
                raise RuntimeError(f"Error building extension '{request.name}':\n{outcome.log}")
            library = str(placed(Path(outcome.library), request.name, build_directory))
        return _module(request.name, library) if is_python_module else _loaded(library)

    def load_inline(
        name: str,
        cpp_sources: str | Sequence[str],
        cuda_sources: str | Sequence[str] | None = None,
        sycl_sources: object = None,
        functions: str | Sequence[str] | dict[str, str] | None = None,
        extra_cflags: Sequence[str] | None = None,
        extra_cuda_cflags: Sequence[str] | None = None,
        extra_sycl_cflags: object = None,
        extra_ldflags: Sequence[str] | None = None,
        extra_include_paths: str | Sequence[str] | None = None,
        build_directory: object = None,
        verbose: bool = False,
        with_cuda: bool | None = None,
        with_sycl: object = None,
        is_python_module: bool = True,
        with_pytorch_error_handling: bool = True,
        keep_intermediates: bool = True,
        use_pch: bool = False,
        no_implicit_headers: bool = False,
    ) -> ModuleType | str:
        _refuse_sycl(sycl_sources, with_sycl)
        cpp, cuda = _texts(cpp_sources), _texts(cuda_sources)
        folders, elsewhere = split_folders(_texts(extra_include_paths))
        own = gather((), folders, (*cpp, *cuda))
        includes = tuple(f"-I{folder}" for folder in elsewhere)
        request = BuildRequest(
            name=name,
            cpp_sources=cpp,
            cuda_sources=cuda,
            functions=_functions(functions),
            cflags=(*includes, *_texts(extra_cflags)),
            cuda_cflags=(*includes, *_texts(extra_cuda_cflags)),
            ldflags=_texts(extra_ldflags),
            included=own.included,
            include_folders=own.folders,
            with_cuda=bool(with_cuda) or bool(cuda_sources),
            implicit_headers=not no_implicit_headers,
        )
        return built(request, build_directory, is_python_module=is_python_module)

    def load(
        name: str,
        sources: str | Sequence[str],
        extra_cflags: Sequence[str] | None = None,
        extra_cuda_cflags: Sequence[str] | None = None,
        extra_sycl_cflags: object = None,
        extra_ldflags: Sequence[str] | None = None,
        extra_include_paths: str | Sequence[str] | None = None,
        build_directory: object = None,
        verbose: bool = False,
        with_cuda: bool | None = None,
        with_sycl: object = None,
        is_python_module: bool = True,
        is_standalone: bool = False,
        keep_intermediates: bool = True,
    ) -> ModuleType | str:
        _refuse_sycl(None, with_sycl)
        if is_standalone:
            if is_python_module:
                raise ValueError("`is_python_module` and `is_standalone` are mutually exclusive.")
            raise RuntimeError(f"Error building extension '{name}': no standalone programs here")
        paths = [Path(source) for source in _texts(sources)]
        folders, elsewhere = split_folders(_texts(extra_include_paths))
        own = gather(paths, folders)
        includes = tuple(f"-I{folder}" for folder in elsewhere)
        request = BuildRequest(
            name=name,
            cflags=(*includes, *_texts(extra_cflags)),
            cuda_cflags=(*includes, *_texts(extra_cuda_cflags)),
            ldflags=_texts(extra_ldflags),
            files=own.sources,
            included=own.included,
            include_folders=own.folders,
            with_cuda=bool(with_cuda) or any(path.suffix in _DEVICE_SUFFIXES for path in paths),
        )
        return built(request, build_directory, is_python_module=is_python_module)

    cpp_extension.load_inline = load_inline
    cpp_extension.load = load


def placed(library: Path, name: str, asked: object) -> Path:
    """Copies a library to `{folder}/{name}.so` and returns that path, which is absolute.

    `asked` is the caller's `build_directory`; PyTorch's default is used where it cannot be written
    to. Another library of the same name goes to `{name}_v1.so` and so on, as in PyTorch. Sealed
    memory has no path, and PyTorch resolves a path before it loads it: hence a copy.
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


def _texts(value: str | Path | Iterable[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str | Path):
        return (str(value),)
    return tuple(str(each) for each in value)


def _functions(value: str | Sequence[str] | dict[str, str] | None) -> tuple[tuple[str, str], ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return ((value, value),)
    if isinstance(value, dict):
        return tuple((str(name), str(doc)) for name, doc in value.items())
    if isinstance(value, list | tuple):
        return tuple((str(name), str(name)) for name in value)
    raise ValueError(f"Expected 'functions' to be a list or dict, but was {type(value)}")


def _refuse_sycl(sources: object, wanted: object) -> None:
    if sources or wanted:
        raise RuntimeError("SYCL sources cannot be built here")


def _module(name: str, library: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, library)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _loaded(library: str) -> str:
    import torch

    torch.ops.load_library(library)
    return library
