"""One candidate's process: it loads the candidate, calls it, and returns bytes, never a verdict.

Everything in this process is at the candidate's mercy from the import on; the judge believes
nothing that it says but the bytes in the output slot.
"""

from __future__ import annotations

import os
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import astuple, dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, cast

import torch

from evaluator.backend_flags import BackendFlags
from evaluator.hardware.cuda_memory import hold_stream, signal
from evaluator.ipc.failure import Failure, Phase, no_class
from evaluator.ipc.reply import DTYPES, GATE_BYTES, OutputLayout, Reply, Sources, place_after
from evaluator.ipc.wire import Channel, Kind, Message
from evaluator.worker import build_stub, stated_gpu
from evaluator.worker.candidate_module import FILE, import_candidate, show_source
from evaluator.worker.initial_values import repeated_initial_values
from evaluator.worker.memory import SharedMemory, limit_growth, map_shared, tensor_at
from evaluator.worker.memory_order import MemoryOrder, in_order
from evaluator.worker.orders import CallOrder, ConstructOrder, LoadOrder, WarmOrder
from evaluator.worker.poison import (
    poison_free_memory,
    poison_shared_memory,
    shared_memory_kernel,
)
from evaluator.worker.random_constants import random_constants
from evaluator.worker.steps import Result, fill_free_memory, take
from evaluator.worker.trial_memory import TrialMemory
from evaluator.worker.values import decode, dtype_name, flatten
from evaluator.worker.weights import FITS, with_weights

_SPIN_S = 0.005
_GRAIN = 2**15


def serve(channel: Channel) -> None:
    Worker(channel).serve()


@dataclass
class Worker:
    channel: Channel
    device: str = "cpu"
    module: torch.nn.Module | None = None
    namespace: types.ModuleType | None = None
    memory: dict[str, torch.Tensor] = field(default_factory=dict)
    class_name: str = "ModelNew"
    source: str = ""
    dtype: torch.dtype = torch.float32
    copies_inputs: bool = False
    earlier: torch.nn.Module | None = None
    """An earlier instance that was kept; `other` changes places with it."""
    reference_file: types.ModuleType | None = None
    reference: torch.nn.Module | None = None
    """Runs before the candidate in calls that ask for it, as in KernelBench's process."""
    trial: TrialMemory = field(default_factory=TrialMemory)
    orders: list[MemoryOrder] = field(default_factory=list)
    layouts: list[tuple[torch.Size, torch.dtype]] = field(default_factory=list)
    """Of the last results."""
    behind_fill: list[torch.Tensor] = field(default_factory=list)
    kept: list[torch.Tensor] = field(default_factory=list)
    """The result of an earlier call, for the judge to look at after a later one."""

    def serve(self) -> None:
        phases: dict[Kind, Phase] = {Kind.CONSTRUCT: "construct", Kind.PREPARE: "call"}
        while True:
            message = self.channel.receive()
            try:
                self._do(message)
            except BaseException as error:  # noqa: BLE001 - the boundary of the process
                self._fail(phases.get(message.kind, "import"), error)

    def _do(self, message: Message) -> None:
        match message.kind:
            case Kind.WARM:
                self._warm(WarmOrder.decode(message.payload))
            case Kind.LOAD:
                self._load(LoadOrder.decode(message.payload))
            case Kind.CONSTRUCT:
                self._construct(ConstructOrder.decode(message.payload), message.fds)
            case Kind.PREPARE:
                self._call(CallOrder.decode(message.payload))
            case _:
                raise AssertionError(f"{message.kind.name} is no order")

    def _fail(self, phase: Phase, error: BaseException) -> None:
        show_source(self.source)
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if Path(frame.filename).name == FILE]
        ours = Path(__file__).parent
        beyond = [frame for frame in frames if Path(frame.filename).parent != ours]
        failure = Failure(
            phase,
            type(error).__name__,
            "".join(traceback.format_exception_only(error)).strip(),
            "".join(traceback.format_list(own or beyond[-3:])),
        )
        self.channel.send(Kind.FAILED, failure.encode())

    def _warm(self, order: WarmOrder) -> None:
        if order.context:
            _make_context(order.device)
        elif order.device != "cpu":
            torch.cuda.init()
        self.channel.send(Kind.WARMED)

    def _load(self, order: LoadOrder) -> None:
        self.device = order.device
        self.class_name = order.class_name
        self.dtype = getattr(torch, order.dtype)
        if order.growth_bytes is not None:
            limit_growth(order.growth_bytes)
        torch.set_num_threads(order.threads)
        # Children get tensors by name: no descriptors may be sent to them (`walls/seccomp.py`).
        torch.multiprocessing.set_sharing_strategy("file_system")
        BackendFlags(*order.flags).set()
        # Before the candidate can; at no cost where it is there.
        _make_context(self.device)
        self.channel.send(Kind.WARMED)
        build_stub.install(build_stub.over(self.channel))
        if order.gpu is not None:
            stated_gpu.state(order.gpu)
        if order.reference is not None:
            self.reference_file = types.ModuleType("reference")
            exec(compile(order.reference, "reference.py", "exec"), vars(self.reference_file))
        self.source = order.source
        self.namespace = import_candidate(self.source, order.text)
        if not isinstance(getattr(self.namespace, self.class_name, None), type):
            raise NameError(no_class(self.class_name, _modules_in(self.namespace)))
        self.channel.send(Kind.IMPORTED)

    def _construct(self, order: ConstructOrder, fds: tuple[int, ...]) -> None:
        weights_fd, inputs_fd, outputs_fd = fds
        weights = map_shared(SharedMemory("cpu", order.weights_bytes, weights_fd), writable=False)
        where = "cpu" if self.device == "cpu" else self.device.split(":")[1]
        self.memory["inputs"] = map_shared(
            SharedMemory(where, order.inputs_bytes, inputs_fd), writable=order.inputs_writable
        )
        self.copies_inputs = order.copies_inputs
        self.orders = [MemoryOrder(tuple(shape), tuple(stride)) for shape, stride in order.outputs]
        self.memory["outputs"] = map_shared(
            SharedMemory(where, order.outputs_bytes, outputs_fd), writable=True
        )
        if self.reference_file is not None:
            with _attributed_to_reference():
                self.reference = self._new_module(order, weights, self.reference_file.Model)
        kind = getattr(self.namespace, self.class_name)
        tensors = {name: tensor_at(weights, each) for name, each in order.tensors.items()}
        loaded = with_weights(lambda: self._new_module(order, weights, kind), kind, tensors)
        if self.reference is not None:
            self.reference.to(device=self.device, dtype=self.dtype)
        module = loaded.module.to(self.device)
        if self.dtype is not torch.float32:
            module = module.to(self.dtype)
        if order.compile_with is not None:
            module = cast(torch.nn.Module, torch.compile(module, **order.compile_with))
        self.kept, self.earlier = [], None
        if self.module is not None and order.earlier == "loaded":
            module.load_state_dict(self.module.state_dict())
        if self.module is not None and order.earlier == "kept":
            self.earlier = self.module
        self.module = module
        self.channel.send(
            Kind.CONSTRUCTED,
            bytes([FITS.index(loaded.fit), loaded.changed, *astuple(BackendFlags.current())])
            + loaded.unlike.encode("ascii", "replace")[:512],
        )

    def _new_module(
        self, order: ConstructOrder, weights: torch.Tensor, kind: Callable[..., torch.nn.Module]
    ) -> torch.nn.Module:
        torch.manual_seed(order.seed)
        arguments = [decode(value, weights, torch.Tensor.clone) for value in order.arguments]
        constants = random_constants(order.seed) if order.random_constants else nullcontext()
        with repeated_initial_values() if order.repeated_values else nullcontext(), constants:
            module = kind(*arguments)
        if not isinstance(module, torch.nn.Module):
            raise TypeError(f"{self.class_name} is not a torch.nn.Module")
        return module

    def _call(self, order: CallOrder) -> None:
        assert self.module is not None
        inputs = self.memory["inputs"]
        if self.device == "cpu":
            # A storage for this call alone: sending a tensor to a child moves what it is a view of.
            inputs = torch.from_numpy(inputs.numpy())
        is_trial = order.reference and self.device != "cpu"
        if is_trial:
            arguments = self.trial.inputs(order.arguments, inputs)
        else:
            arguments = [decode(value, inputs, lambda given: given) for value in order.arguments]
        slot = self.memory["outputs"]
        if order.reference and self.reference is not None:
            self.reference.to(device=self.device, dtype=self.dtype)
        for step in order.steps:
            if step == "other" and self.earlier is not None:
                self.module, self.earlier = self.earlier, self.module
            elif step == "fill":
                self.behind_fill = fill_free_memory(self.layouts, self.device)
            else:
                take(step, self.module, self.device, self.dtype)
        if order.seed is not None:
            torch.manual_seed(order.seed)
        if self.device == "cpu":
            _line_up_threads()
        elif order.poison is not None:
            poison_free_memory(order.poison)
        self.channel.send(Kind.PREPARED)
        if self.device == "cpu":
            # Who sleeps may wake up elsewhere.
            self.channel.spin(_SPIN_S)
        self.channel.receive()
        if is_trial:
            self.trial.fill()
        elif self.copies_inputs:
            arguments = [decode(value, inputs, torch.clone) for value in order.arguments]
        if self.device == "cpu":
            with torch.no_grad():
                beside = self._run_reference(order, arguments)
                result = self.module(*arguments)
            tensors = self._returned(flatten(result, look=order.look), order.result)
            outputs = in_order(tensors, self.orders) + beside
            is_copied = any(one is not other for one, other in zip(outputs, tensors, strict=False))
            sources = Sources(in_place(tensors), (0, 0)) if is_copied else None
            self.channel.send(Kind.RETURNED, Reply(in_place(outputs), sources=sources).encode())
            # The judge reads the outputs where they lie, while this process stands still.
            self.channel.receive()
            if order.copy:
                layouts = copy_out(outputs, slot, self.orders)
                self.channel.send(Kind.DONE, Reply(layouts).encode())
            return
        begin, middle, end = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        if order.held:
            hold_stream(torch.cuda.current_stream().cuda_stream, slot[-GATE_BYTES:].data_ptr(), 1)
        if order.poison is not None:
            poison_shared_memory(order.poison)
        with torch.no_grad():
            beside = self._run_reference(order, arguments)
            begin.record()
            # A container may be the candidate's own, and do the work as it is walked through.
            tensors = flatten(self.module(*arguments), look=order.look)
            middle.record()
            tensors = self._returned(tensors, order.result)
            layouts = copy_out(tensors + beside, slot[:-GATE_BYTES], self.orders)
            end.record()
            # The word behind that on which a stream is held.
            signal(torch.cuda.current_stream().cuda_stream, slot[-GATE_BYTES:].data_ptr() + 4, 1)
            if is_trial:
                self.trial.compare(tensors)
        if order.held:
            self.channel.send(Kind.ENQUEUED)
        torch.cuda.synchronize()
        sources = Sources(
            in_place(tensors + beside), (inputs.data_ptr(), inputs.data_ptr() + inputs.numel())
        )
        forward_us, total_us = begin.elapsed_time(middle) * 1e3, begin.elapsed_time(end) * 1e3
        reply = Reply(layouts, forward_us, total_us, sources)
        self.channel.send(Kind.DONE, reply.encode())

    def _run_reference(self, order: CallOrder, arguments: Sequence[Any]) -> list[torch.Tensor]:
        if not order.reference or self.reference is None:
            return []
        if self.device != "cpu":
            # What the candidate enqueued before may fail here, and is its own.
            torch.cuda.synchronize()
        with _attributed_to_reference():
            outputs = flatten(self.reference(*arguments))
            if self.device != "cpu":
                torch.cuda.synchronize()
                self.trial.expected = outputs
        if order.seed is not None:
            torch.manual_seed(order.seed)
        return outputs

    def _returned(self, tensors: list[torch.Tensor], which: Result) -> list[torch.Tensor]:
        self.layouts = [(tensor.shape, tensor.dtype) for tensor in tensors]
        if which == "kept":
            return self.kept
        if which == "keep":
            self.kept = tensors
        return tensors


@contextmanager
def _attributed_to_reference() -> Iterator[None]:
    """What is raised here says that the reference raised it, and not the candidate's own code."""
    try:
        yield
    except Exception as error:
        raise RuntimeError(
            f"the reference, run beside the candidate, raised {type(error).__name__}: {error}"
        ) from error


def _modules_in(namespace: types.ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(namespace).items()
        if isinstance(value, type)
        and issubclass(value, torch.nn.Module)
        and value.__module__ == namespace.__name__
    ]


def _make_context(device: str) -> None:
    if device != "cpu":
        torch.cuda.set_device(device)
        torch.zeros(1, device=device)
        shared_memory_kernel(torch.cuda.current_device())
        torch.cuda.synchronize()


def _line_up_threads() -> None:
    """Main thread and OpenMP's pool awake, on processors of their own, as in a loop of calls.

    The first processor is the one that the pool leaves to the main thread. All are allowed again
    at once: threads of the candidate's own inherit what is allowed.
    """
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    os.sched_setaffinity(0, allowed)
    # More than one grain of work for each thread: all wake up, and look for work for a while.
    torch.zeros(2 * _GRAIN * torch.get_num_threads(), dtype=torch.uint8)


def _dtype_name(tensor: torch.Tensor) -> str:
    name = dtype_name(tensor.dtype)
    if name not in DTYPES:
        raise TypeError(f"an output has dtype {name}, which no problem here uses")
    return name


def in_place(tensors: list[torch.Tensor]) -> tuple[OutputLayout, ...]:
    return tuple(
        OutputLayout(_dtype_name(t), tuple(t.shape), tuple(t.stride()), t.data_ptr())
        for t in tensors
    )


def copy_out(
    tensors: list[torch.Tensor], slot: torch.Tensor, orders: list[MemoryOrder]
) -> tuple[OutputLayout, ...]:
    """Copy every output into the slot, one after the other; raises if they don't fit."""
    layouts = []
    offset = 0
    # Those of a reference that runs beside the module come behind.
    for tensor, order in zip_longest(tensors, (2 * orders)[: len(tensors)]):
        size = tensor.numel() * tensor.element_size()
        if offset + size > slot.numel():
            raise ValueError(
                f"outputs are larger than they should be: one has shape {tuple(tensor.shape)}"
            )
        flat = slot[offset : offset + size].view(tensor.dtype)
        is_right = order and order.shape == tensor.shape
        target = order.over(flat) if is_right else flat.view(tensor.shape)
        target.copy_(tensor)
        layouts.append(
            OutputLayout(_dtype_name(tensor), tuple(tensor.shape), tuple(target.stride()), offset)
        )
        offset = place_after(offset + size)
    return tuple(layouts)
