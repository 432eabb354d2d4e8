"""Runs the test and the sweep of a function once, and notes how what it is called with is made.

It stands alone: `recording.py` copies it behind walls, where there is no GPU. `python confined.py`
reads `task.json` and writes `record.json`, both in the present folder. Nothing in the record is
believed: it is read as data.

Operators are noted as a program is run, so each argument is known by the steps that made it, such
as `torch.tril(torch.randn(8, 8))`: later calls repeat the steps and get fresh values that are
triangular too. The sweep runs on the meta device, where large tensors take no memory; where it
reads values, it runs once more with real ones.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import json
import math
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._pytree import tree_leaves
from torch.utils._triton import has_triton_package

_STUBS = ("data_utils", "performance_utils", "kernelbenchx", "triton")
_MOST_CALLS = 256
_MOST_VALUES = 4096


class _Noted(BaseException):
    """Ends a call of the sweep once it is noted: nothing is computed."""


class Steps(TorchFunctionMode):
    """What PyTorch was asked for, in order; every device is the one at hand."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[dict[str, Any]] = []
        self._places: dict[int, tuple[torch.Tensor, list[int]]] = {}
        """By its id, a tensor, the step that made it, and where in its result it is."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = {k: v for k, v in (kwargs or {}).items() if k not in ("device", "pin_memory")}
        if func is torch.Tensor.to:
            args = tuple(a for a in args if not _is_device(a))
            if len(args) == 1 and not kwargs.keys() - {"non_blocking"}:
                return args[0]
        if func in (torch.Tensor.cuda, torch.Tensor.cpu):
            return args[0]
        given = _tensors([*args, *kwargs.values()])
        versions, known = [t._version for t in given], [self._place(t) for t in given]
        result = func(*args, **kwargs)
        written = [_storage(t) for t, v in zip(given, versions, strict=True) if t._version != v]
        made = [t for t in _tensors(result) if id(t) not in self._places]
        if made or written:
            try:
                step = {"args": self.encoded(args), "kwargs": self.encoded(kwargs)}
            except TypeError as error:
                step = {"unusable": f"{resolve_name(func)} got {error}"}
            step |= {"name": resolve_name(func) or "", "uses": [place[0] for place in known]}
            step |= {"writes": written, "storages": [_storage(t) for t in _tensors(result)]}
            self._add(step, result)
        return result

    def _add(self, step: dict[str, Any], result: Any, path: tuple[int, ...] = ()) -> None:
        if not path:
            self.steps.append(step | {"number": len(self.steps)})
        if isinstance(result, torch.Tensor):
            self._places.setdefault(id(result), (result, [len(self.steps) - 1, *path]))
        elif isinstance(result, tuple | list):
            for number, item in enumerate(result):
                self._add(step, item, (*path, number))

    def _place(self, tensor: torch.Tensor) -> list[int]:
        """Of one that no noted step made: of another that lies in the same memory, or it is a
        constant."""
        if id(tensor) in self._places:
            return self._places[id(tensor)][1]
        for other, place in reversed(self._places.values()):
            if _lies(other) == _lies(tensor):
                return place
        step: dict[str, Any] = {"name": "torch.tensor", "kwargs": {}, "uses": [], "writes": []}
        step["storages"] = [_storage(tensor)]
        if tensor.is_meta or tensor.numel() > _MOST_VALUES:
            step["unusable"] = "it gets a large tensor that PyTorch did not make"
        else:
            # Their own functions are not noted here.
            with torch._C.DisableTorchFunction():
                values = self.encoded(tensor.tolist())
            step |= {"args": [values], "kwargs": {"dtype": self.encoded(tensor.dtype)}}
        self._add(step, tensor)
        return self._places[id(tensor)][1]

    def encoded(self, value: Any) -> Any:
        """As JSON. Raises `TypeError` for what has no text."""
        if isinstance(value, torch.Tensor):
            return {"tensor": self._place(value)}
        if _is_device(value):
            return {"device": 0}
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
            return {"torch": str(value).removeprefix("torch.")}
        if isinstance(value, slice):
            return {"slice": self.encoded([value.start, value.stop, value.step])}
        if value is ...:
            return {"ellipsis": 0}
        if isinstance(value, tuple):
            return {"tuple": [self.encoded(item) for item in value]}
        if isinstance(value, list):
            return [self.encoded(item) for item in value]
        if isinstance(value, dict):
            return {"dict": [[self.encoded(k), self.encoded(v)] for k, v in value.items()]}
        raise TypeError(f"a {type(value).__name__}")

    def behind(self, tensors: list[torch.Tensor]) -> list[dict[str, Any]]:
        """The steps that what these hold now rests on: those that made it or wrote to it."""
        needed = {self._place(t)[0] for t in tensors}
        storages = {_storage(t) for t in tensors}
        found = []
        for step in reversed(self.steps):
            if step["number"] in needed or storages.intersection(step["writes"]):
                found.append(step)
                needed.update(step["uses"])
                storages.update(step["storages"], step["writes"])
                for used in step["uses"]:
                    storages.update(self.steps[used]["storages"])
        return found[::-1]


class Recorder:
    """Stands in for the function; `calls` has what each call was given."""

    def __init__(self, function: Callable[..., Any], steps: Steps) -> None:
        self._function, self._steps, self.answers = function, steps, True
        self.calls: list[dict[str, Any]] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(self.calls) >= _MOST_CALLS:
            raise RuntimeError(f"more than {_MOST_CALLS} calls")
        self.calls.append(call := self._noted(args, kwargs))
        if not self.answers:
            raise _Noted
        try:
            result = self._function(*args, **kwargs)
        except (NotImplementedError, RuntimeError) as error:
            if "not implemented" not in str(error):
                self.calls.remove(call)
                raise
            return torch.zeros(())  # a GPU may well have it
        if isinstance(result, torch.optim.Optimizer):
            call["unusable"] = "its function returns an optimiser, no tensors to compare"
        return result

    def _noted(self, args: Any, kwargs: Any) -> dict[str, Any]:
        tensors = _tensors([*args, *kwargs.values()])
        call: dict[str, Any] = {}
        try:
            call["args"] = [*map(self._steps.encoded, args)]
            call["kwargs"] = {k: self._steps.encoded(v) for k, v in kwargs.items()}
        except TypeError as error:
            call["unusable"] = f"its function gets {error}"
        steps = self._steps.behind(tensors)
        call["steps"] = [{key: step.get(key) for key in _STEP} for step in steps]
        call |= next(({"unusable": s["unusable"]} for s in steps if "unusable" in s), {})
        call["tensors"] = [{"shape": list(t.shape), "dtype": str(t.dtype)[6:]} for t in tensors]
        return call


_STEP = ("number", "name", "args", "kwargs", "writes")


class _Stub(types.ModuleType):
    """A module of the suite's that is not here, or not wanted: any name in it is there."""

    names: ClassVar[dict[str, Any]] = {}

    def __getattr__(self, name: str) -> Any:
        if name in self.names:
            return self.names[name]
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: args[0] if args and callable(args[0]) else None


class _Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        stubbed = name.split(".")[0] in _STUBS
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if stubbed else None

    def create_module(self, spec: Any) -> types.ModuleType:
        return _Stub(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


class Sweep:
    """What the class of a performance file derives from."""

    def __init__(self, op_name: str = "", dtype: Any = None, **kwargs: Any) -> None:
        self.op_name, self.dtype, self.kwargs = op_name, dtype, kwargs
        self.input_tensors: list[Any] = []


def rand_tensor(
    shape: Any,
    *,
    dtype: Any = torch.float32,
    device: Any = None,
    mode: str = "standard",
    outlier_prob: float = 0.001,
    outlier_scale: float = 50.0,
    low: float = -1.0,
    high: float = 1.0,
) -> torch.Tensor:
    """Normal numbers, uniform ones, or normal ones of which some are scaled."""
    if mode == "uniform":
        return torch.rand(tuple(shape), dtype=dtype) * (high - low) + low
    normal = torch.randn(tuple(shape), dtype=dtype)
    if mode == "standard":
        return normal
    return torch.where(torch.rand(tuple(shape)) < outlier_prob, normal * outlier_scale, normal)


def rand_int(
    shape: Any, *, low: int, high: int, device: Any = None, dtype: Any = torch.int64
) -> Any:
    return torch.randint(low, high, tuple(shape), dtype=dtype)


def rand_bool(shape: Any, *, device: Any = None) -> Any:
    return torch.randint(0, 2, tuple(shape), dtype=torch.bool)


def main(task: dict[str, str]) -> dict[str, Any]:
    has_triton_package()  # PyTorch keeps the answer, and takes no stub for the real one
    sys.meta_path.insert(0, _Stubs())
    torch.cuda.synchronize = lambda *_: None
    # Some make fewer calls, or smaller ones, where there is no GPU.
    torch.cuda.is_available = lambda: True
    torch.cuda.mem_get_info = lambda *_: (2**35, 2**35)
    _Stub.names = {"Performance_Metrics": Sweep, "rand_tensor": rand_tensor}
    _Stub.names |= {"rand_int": rand_int, "rand_bool": rand_bool}
    names: dict[str, Any] = {"__name__": "task", "__file__": str(Path("task.py").resolve())}
    exec(compile(task["reference"], "the reference", "exec"), names)
    function = names[task["function"]]
    record: dict[str, Any] = {"ended": ""}
    torch.manual_seed(0)
    with Steps() as steps:
        recorder = names[task["function"]] = Recorder(function, steps)
        try:
            exec(compile(task["test"], "the test", "exec"), names)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a foreign file's
            record["ended"] = f"the test raised {_words(error)}"
    record["test"] = recorder.calls
    _Stub.names |= {k: v for k, v in names.items() if not k.startswith("__")}
    try:
        record["sweep"] = _sweep(task, function, "meta")
    except Exception:  # noqa: BLE001 - it reads values, or an operator has no meta kernel
        try:
            record["sweep"] = _sweep(task, function, "cpu")
        except Exception as error:  # noqa: BLE001 - likewise
            record |= {"sweep": [], "ended": f"the performance file raised {_words(error)}"}
    return record


def _sweep(task: dict[str, str], function: Any, device: str) -> list[dict[str, Any]]:
    with torch.device(device), Steps() as steps:
        recorder = _Stub.names[task["function"]] = Recorder(function, steps)
        names: dict[str, Any] = {"__name__": "performance", "__file__": "performance/perf.py"}
        exec(compile(task["performance"], "the performance file", "exec"), names)
        kinds = [k for k in names.values() if isinstance(k, type) and issubclass(k, Sweep)]
        sweep: Any = next(kind for kind in kinds if kind is not Sweep)()
        # Some of them call the function here, too, and where they count bytes.
        sweep.get_input_tensors()
        noted = []
        for inputs in sweep.input_tensors:
            on_device = sweep.to_cuda(inputs)
            recorder.calls.clear()
            recorder.answers = False
            with contextlib.suppress(_Noted):
                sweep.call_op(on_device)
            recorder.answers = True
            if not recorder.calls:
                raise RuntimeError("call_op does not call the function")
            noted.append(recorder.calls[0] | _counts(sweep, on_device))
    return noted


def _counts(sweep: Any, inputs: Any) -> dict[str, float]:
    """The task's own: a call of a second moves so many bytes and takes so many operations."""
    try:
        gbps, tflops = sweep.get_gbps(inputs, 1000.0), sweep.get_tflops(inputs, 1000.0)
        return {"moved_bytes": round(gbps * 1e9), "operations": round(tflops * 1e12)}
    except Exception:  # noqa: BLE001 - likewise
        return {}


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _storage(tensor: torch.Tensor) -> int:
    with torch._C.DisableTorchFunction():
        return int(tensor.untyped_storage()._cdata)


def _lies(tensor: torch.Tensor) -> tuple[Any, ...]:
    with torch._C.DisableTorchFunction():
        return _storage(tensor), tensor.shape, tensor.stride(), tensor.storage_offset()


def _is_device(value: Any) -> bool:
    named = isinstance(value, str) and value.partition(":")[0] in ("cuda", "cpu")
    return named or isinstance(value, torch.device)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


if __name__ == "__main__":
    found = main(json.loads(Path("task.json").read_text()))
    Path("record.json").write_text(json.dumps(found))
