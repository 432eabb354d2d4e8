"""Lets functions of a candidate's built libraries show up in a CPU trace under their names."""

from __future__ import annotations

import ctypes
import os
import types
from collections.abc import Callable
from typing import Any

import torch

from evaluator.collect.cpu_trace import OWN_PREFIX


def mark_own_functions() -> None:
    """Marks functions of modules that `load_inline` and `load` return, and of the libraries whose
    paths they return, where `ctypes` opens these."""
    from torch.utils import cpp_extension

    libraries: set[str] = set()

    def marked(builds: Callable[..., Any]) -> Callable[..., Any]:
        def load(*arguments: Any, **options: Any) -> Any:
            built = builds(*arguments, **options)
            if not isinstance(built, types.ModuleType):
                libraries.add(built)
                return built
            libraries.add(str(built.__file__))
            return _MarkedModule(built)

        return load

    cpp_extension.load_inline = marked(cpp_extension.load_inline)
    cpp_extension.load = marked(cpp_extension.load)
    _mark_opened(libraries)


class _MarkedModule:
    """An extension module each of whose functions announces itself to the profiler."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if not callable(found) or isinstance(found, type):
            return found

        def announced(*arguments: Any, **options: Any) -> Any:
            with torch.profiler.record_function(OWN_PREFIX + name):
                return found(*arguments, **options)

        return announced


def _mark_opened(libraries: set[str]) -> None:
    """Functions that `ctypes` finds in one of these libraries announce themselves as well."""
    opens = ctypes.CDLL.__init__

    def opened(self: Any, name: Any, *arguments: Any, **options: Any) -> None:
        opens(self, name, *arguments, **options)
        if name is None or os.path.realpath(name) not in map(os.path.realpath, libraries):
            return
        plain = self._FuncPtr

        class Announced(plain):  # type: ignore[misc, valid-type]
            _flags_, _restype_ = plain._flags_, plain._restype_

            def __call__(self, *values: Any) -> Any:
                with torch.profiler.record_function(OWN_PREFIX + self.__name__):
                    return super().__call__(*values)

        self._FuncPtr = Announced

    ctypes.CDLL.__init__ = opened  # type: ignore[method-assign]
