"""What `load_inline` and `load` are in a worker: they ask the trusted builder for a library.

The signatures, the errors and the place of the library are PyTorch's. Nothing is compiled or
printed here.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import ModuleType, SimpleNamespace

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
    inline = inspect.signature(cpp_extension.load_inline)
    of_files = inspect.signature(cpp_extension.load)

    def built(request: BuildRequest, given: SimpleNamespace) -> ModuleType | str:
        with one_at_a_time:  # candidates build in several threads, and `send` is for one
            outcome = send(request)
            if not outcome.ok:
                raise RuntimeError(f"Error building extension '{request.name}':\n{outcome.log}")
            library = str(placed(Path(outcome.library), request.name, given.build_directory))
        return _module(request.name, library) if given.is_python_module else _loaded(library)

    def load_inline(*args: object, **named: object) -> ModuleType | str:
        given = _given(inline, args, named)
        _refuse_sycl(given.sycl_sources, given.with_sycl)
        cpp, cuda = _texts(given.cpp_sources), _texts(given.cuda_sources)
        request = replace(
            _request(given, (), (*cpp, *cuda)),
            cpp_sources=cpp,
            cuda_sources=cuda,
            functions=_functions(given.functions),
            with_cuda=bool(given.with_cuda or given.cuda_sources),
            implicit_headers=not given.no_implicit_headers,
        )
        return built(request, given)

    def load(*args: object, **named: object) -> ModuleType | str:
        given = _given(of_files, args, named)
        _refuse_sycl(None, given.with_sycl)
        if given.is_standalone:
            if given.is_python_module:
                raise ValueError("`is_python_module` and `is_standalone` are mutually exclusive.")
            raise RuntimeError(
                f"Error building extension '{given.name}': no standalone programs here"
            )
        paths = [Path(source) for source in _texts(given.sources)]
        on_device = any(path.suffix in _DEVICE_SUFFIXES for path in paths)
        request = _request(given, paths, ())
        return built(replace(request, with_cuda=bool(given.with_cuda) or on_device), given)

    cpp_extension.load_inline = load_inline
    cpp_extension.load = load


def _given(
    signature: inspect.Signature, args: tuple[object, ...], named: dict[str, object]
) -> SimpleNamespace:
    """The arguments of a call by PyTorch's names. Raises `TypeError` as the call would."""
    bound = signature.bind(*args, **named)
    bound.apply_defaults()
    return SimpleNamespace(**bound.arguments)


def _request(given: SimpleNamespace, paths: Sequence[Path], texts: Sequence[str]) -> BuildRequest:
    folders, elsewhere = split_folders(_texts(given.extra_include_paths))
    own = gather(paths, folders, texts)
    includes = tuple(f"-I{folder}" for folder in elsewhere)
    return BuildRequest(
        name=given.name,
        cflags=(*includes, *_texts(given.extra_cflags)),
        cuda_cflags=(*includes, *_texts(given.extra_cuda_cflags)),
        ldflags=_texts(given.extra_ldflags),
        files=own.sources,
        included=own.included,
        include_folders=own.folders,
    )


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
