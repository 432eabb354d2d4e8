"""A worker with a constructed module, and the calls made of it."""

from __future__ import annotations

import itertools
import random
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

import torch

from evaluator.backend_flags import BackendFlags
from evaluator.builder.handover import Build
from evaluator.errors import DeviceError
from evaluator.evaluation import BuildReport, Status
from evaluator.hardware.kernel_files import kilobyte_fields
from evaluator.ipc.failure import Phase
from evaluator.ipc.reply import GATE_BYTES, Reply, Sources
from evaluator.ipc.wire import Kind, Message
from evaluator.judge.blockwise import same_bytes
from evaluator.judge.inputs.arena import Arena, make_arena
from evaluator.judge.inputs.mapped_arguments import MappedArguments
from evaluator.judge.rejection import Rejection, protocol_broken
from evaluator.judge.workers import quiescence
from evaluator.judge.workers.call import Call
from evaluator.judge.workers.conversation import Conversation
from evaluator.judge.workers.gate import Gate
from evaluator.judge.workers.output_memory import (
    Borrowed,
    any_overlap,
    any_repeats,
    can_read,
    from_worker,
    in_slot,
    lies_within,
)
from evaluator.judge.workers.process import START_TIMEOUT_S, WorkerProcess
from evaluator.reason import Reason
from evaluator.worker.memory_order import MemoryOrder
from evaluator.worker.orders import CallOrder, ConstructOrder, LoadOrder
from evaluator.worker.poison import POISONS
from evaluator.worker.steps import Result, Step
from evaluator.worker.weights import FITS, Fit

_POISON = range(3, 255)
_LOOKS_AGAIN_FIRST = 3
_LOOKS_AGAIN_PERCENT = 25
_SLOT_REST_S = 0.005


class CallOptions(TypedDict, total=False):
    """How a call is made, where that is not the usual way; see `ModuleRunner.call`."""

    timeout_s: float
    steps: Sequence[Step]
    result: Result
    word: int | None
    reference: bool
    hold_s: float
    reads: bool


class ModuleRunner:
    def __init__(
        self,
        worker: WorkerProcess,
        device: torch.device,
        call_timeout_s: float,
        *,
        poisons: bool = True,
    ) -> None:
        self.worker = worker
        self.device = device
        self.fit: Fit = "none"
        self.changed_weights = False
        self.unlike = ""  # `Loaded.unlike`, by its own word
        self.flags = BackendFlags()
        """Those of its process once the module is constructed, by its own word."""
        self.steps: tuple[Step, ...] = ()
        """What the worker does to its module before each call; KernelBench moves it."""
        self.looks_at_results = False
        """Whether the worker computes with a result that is a subclass of Tensor."""
        self.rejects_late_work = True
        self.called_s = 0.0  # its last verified call
        self.late_work: dict[Reason, str] = {}
        """By reason, what went on after a return and is not refused."""
        self.poison: int | None = None
        """The byte that the slot was filled with before the last call; None: it has no slot."""
        self.word: int | None = None
        """What unwritten memory held in the last call; None: not known."""
        words = random.SystemRandom().sample(POISONS, len(POISONS))
        self._words = itertools.cycle(words if poisons and device.type == "cuda" else [None])
        self.has_reference = False
        """Whether the reference can run in the same process."""
        self.copies_inputs = False
        """Whether the worker calls its module on copies of the inputs, each in a heap block of its
        own, of which a sanitizer knows the bounds. For audits; never for what is timed."""
        self.growth_bytes: int | None = None
        """What the worker may still write to beyond what it holds, where its address space has no
        limit."""
        self.said = Conversation(worker)
        self._build: Build | None = None
        self._call_timeout_s = call_timeout_s
        self._outputs: Arena | None = None
        self._orders: list[MemoryOrder] = []
        self._inputs_fd = -1
        self.construct_on: Callable[..., object]
        """Constructs the module once more, with the same weights, in this worker or in another one;
        raises `Rejection`."""
        self._sealed: list[torch.Tensor] | None = None
        self._taken: torch.Tensor | None = None
        """On a GPU, the slot for outputs when the worker said that it was done."""
        self._looks = 0
        self._memory: WorkerMemory | None = None
        self.memory_bytes: int | None = None
        """The most that the worker held of its device, as seen after its calls or those of another
        worker with the same module."""
        self._reads_in_place = device.type == "cpu" and can_read(worker.pid)

    def construct_again(self) -> None:
        self.construct_on(self)

    @property
    def _slot(self) -> torch.Tensor:
        assert self._outputs is not None
        return self._outputs.bytes[:-GATE_BYTES]

    @property
    def build(self) -> BuildReport | None:
        return self.said.build

    def load(self, order: LoadOrder, build: Build) -> None:
        """Have the worker import the source, on this worker's device; `loaded` waits for it.
        `build`: builds what it asks for, now or later."""
        self._build = build
        self.has_reference = order.reference is not None
        order = replace(order, device=str(self.device), growth_bytes=self.growth_bytes)
        self.said.send(Kind.LOAD, order.encode())

    def loaded(self, timeout_s: float) -> None:
        """Wait until the source is imported.

        Raises `Rejection`, and `DeviceError` where the worker could not make its context on a GPU:
        by then nothing of the source has run.
        """
        on_gpu = self.device.type == "cuda"
        try:
            spent_s = self.said.allowance.spent_s
            self._receive("import", START_TIMEOUT_S if on_gpu else timeout_s, Kind.WARMED)
            self.said.allowance.spent_s = spent_s  # nothing of the source has run by then
        except Rejection as rejection:
            if on_gpu and rejection.reason in (Reason.IMPORT_RAISED, Reason.IMPORT_TIMEOUT):
                raise DeviceError(f"no worker on {self.device}: {rejection.message}") from None
            raise
        self._receive("import", timeout_s, Kind.IMPORTED)

    def _receive(self, phase: Phase, timeout_s: float, expected: Kind) -> Message:
        assert self._build is not None
        return self.said.receive_building(phase, timeout_s, expected, self._build)

    def construct(self, order: ConstructOrder, weights: Arena, inputs: Arena) -> None:
        """Have the module built and given its weights; `constructed` waits for it. The worker gets
        a slot of at least as many bytes for its outputs as the order says."""
        if self._outputs is not None:
            self._outputs.close()
            self._outputs = None
            if self.device.type == "cpu":
                quiescence.let_go(self.worker.pid)
        self._outputs = make_arena(self.device, order.outputs_bytes, read_only_for_others=False)
        order = replace(
            order,
            weights_bytes=weights.size,
            inputs_bytes=inputs.size,
            outputs_bytes=self._outputs.size,
            copies_inputs=self.copies_inputs,
        )
        self._orders = [MemoryOrder(tuple(shape), tuple(stride)) for shape, stride in order.outputs]
        fds = (weights.fd, inputs.fd, self._outputs.fd)
        self.said.send(Kind.CONSTRUCT, order.encode(), fds)
        self._inputs_fd = inputs.fd

    def constructed(self, timeout_s: float) -> Fit:
        """Wait until the module is there; how its weights fitted. Raises `Rejection`."""
        message = self._receive("construct", timeout_s, Kind.CONSTRUCTED)
        payload = message.payload[:5]
        if len(payload) != 5 or payload[0] >= len(FITS):
            raise protocol_broken("an unknown fit of weights")
        self.fit, self.changed_weights = FITS[payload[0]], bool(payload[1])
        self.flags = BackendFlags(*map(bool, payload[2:]))
        unlike = message.payload[5:].decode("ascii", "replace")
        self.unlike = "".join(filter(str.isprintable, unlike)) or self.unlike
        self._hold()
        return self.fit

    @contextmanager
    def call(
        self,
        laid: MappedArguments,
        *,
        random_seed: int | None = None,
        timeout_s: float | None = None,
        steps: Sequence[Step] = (),
        result: Result = "new",
        word: int | None = None,
        reference: bool = False,
        flush: torch.Tensor | None = None,
        hold_s: float = 0.0,
        reads: bool = True,
    ) -> Iterator[Call]:
        """Call the module once on inputs that reach the worker at the start; raises `Rejection`.

        `random_seed`: the worker seeds PyTorch's generators with it before. `steps`: what it does
        to the module before. `result`: which result it returns. `word`: what unwritten
        memory holds, on a GPU; without one, the next of `POISONS`. `reference`: the reference
        runs there before the module, and its outputs come after the module's.

        On a GPU: `flush`, memory that is written once the inputs lie there, so that no cache holds
        them. `hold_s`: the worker's stream is held for so long at most, until all of the call is
        enqueued; a forward that waits for the device never gets so far, and is let go on then.
        `reads`: whether outputs will be read; they are copied at once when the worker is done.

        The outputs can be read while the context lasts; on a sample of the calls that they are
        read in, they must still be the same once the worker has come to rest. On a CPU the worker
        stands still before and after. The slot for outputs is poisoned before. On a GPU the device
        must be idle.
        """
        assert self._outputs is not None
        limit = self._call_timeout_s if timeout_s is None else timeout_s
        copied = not self._reads_in_place
        if copied:
            self.poison = random.SystemRandom().choice(_POISON)
            self._outputs.bytes.fill_(self.poison)
        self._sealed = None
        self.word = next(self._words) if word is None else word
        order = CallOrder(
            arguments=laid.arguments,
            copy=copied,
            seed=random_seed,
            steps=[*self.steps, *steps],
            result=result,
            look=self.looks_at_results,
            held=hold_s > 0,
            poison=self.word,
            reference=reference,
        ).encode()
        gate = Gate(self._outputs.bytes) if self.device.type == "cuda" else None
        asked = time.perf_counter_ns()
        if self.device.type == "cpu":
            quiescence.let_go(self.worker.pid)
        self.said.send(Kind.PREPARE, order)
        self.said.receive("call", limit, {Kind.PREPARED})
        prepare_us = (time.perf_counter_ns() - asked) / 1e3
        if gate is not None:
            self._taken = None
            try:
                call = self._called_on_gpu(gate, laid, limit, flush, hold_s, reads=reads)
            except BaseException:
                gate.give_up()
                raise
            with self.said.allowance.handling(self.slot_bytes):
                yield call
            self._look_again(call.reply)
            self._taken = None
            return
        # It stands still until its time starts: it could watch the inputs arrive, and work by then.
        self._stop()
        laid.lay()
        self.said.send(Kind.GO)
        begin = time.perf_counter_ns()
        quiescence.let_go(self.worker.pid)
        message = self._receive("call", limit, Kind.RETURNED)
        forward_us = wall_us = total_us = (time.perf_counter_ns() - begin) / 1e3
        if copied:
            self.said.send(Kind.RELEASE)
            message = self.said.receive("call", limit, {Kind.DONE})
            wall_us = total_us = (time.perf_counter_ns() - begin) / 1e3
        with self.said.allowance.handling(self.slot_bytes):
            self._stop()
            held_us = (time.perf_counter_ns() - begin) / 1e3 - wall_us
            reply = _decoded(message)
            yield Call(forward_us, total_us, wall_us, prepare_us + held_us, reply)
        self._look_again(reply)
        if not copied:
            self.said.send(Kind.RELEASE)

    def _called_on_gpu(
        self,
        gate: Gate,
        laid: MappedArguments,
        limit_s: float,
        flush: torch.Tensor | None,
        hold_s: float,
        *,
        reads: bool,
    ) -> Call:
        """The call of a worker that is ready for it. The inputs are laid once all is enqueued, and
        nothing but writing `flush` lies between them and the start. Raises `Rejection`."""
        # Whether it will be written does not show from outside.
        taken = torch.empty_like(self._slot)
        if hold_s:
            self.said.send(Kind.GO)
        was_held = hold_s > 0 and self.worker.channel.ready(hold_s)
        before = torch.cuda.Event(enable_timing=True)
        before.record()
        laid.lay()
        if flush is not None:
            flush.add_(1)
        gate.open()
        if not hold_s:
            torch.cuda.synchronize(self.device)
        gate.await_end()
        if reads:
            self._taken = taken.copy_(self._slot)
        if hold_s:
            self._receive("call", limit_s, Kind.ENQUEUED)
        else:
            self.said.send(Kind.GO)
        reply = _decoded(self._receive("call", limit_s, Kind.DONE))
        wall_us = gate.taken_us()
        early_us = before.elapsed_time(gate.start) * 1e3
        return Call(reply.forward_us, reply.total_us, wall_us, early_us, reply, was_held)

    def watch_memory(self) -> None:
        """Count from now on what the worker comes to hold of its device; see `WorkerMemory`.

        Once more where something else has gone from the device: what is known by then stays.
        """
        held = 0 if self.memory_bytes is None else self.memory_bytes + self.slot_bytes
        self._memory = WorkerMemory(self.device, self.worker.pid, held)

    def note_memory(self) -> None:
        """See what the worker holds of its device; nothing else may come or go there meanwhile."""
        if self._memory is not None and self._outputs is not None:
            held = self._memory.most_bytes(self._outputs.size)
            if held is not None:
                self.memory_bytes = max(held, self.memory_bytes or 0)

    @property
    def slot_bytes(self) -> int:
        return self._outputs.size if self._outputs is not None else 0

    def _hold(self) -> None:
        if self.device.type == "cpu":
            quiescence.hold(self.worker.pid)

    def _stop(self) -> None:
        """Have the worker and its children stand still until its next call; raises `Rejection`."""
        self._hold()
        self.stand_still()

    def stand_still(self) -> None:
        """See that nothing of a held worker runs on. Raises `Rejection`."""
        worker, on_cpu = self.worker, self.device.type == "cpu"
        if on_cpu and not (worker.ended or quiescence.stands_still(worker.pid, worker.init)):
            message = "threads or processes of the candidate could not be stopped"
            raise Rejection(Status.INTEGRITY, Reason.NEVER_RESTS, message)

    def _look_again(self, reply: Reply) -> None:
        """Look for work after the return, on a sample of the calls. Raises `Rejection`."""
        sealed, self._sealed = self._sealed, None
        if sealed is None:
            return
        self._looks += 1
        if self._looks > _LOOKS_AGAIN_FIRST and secrets.randbelow(100) >= _LOOKS_AGAIN_PERCENT:
            return
        rested = True
        if self.device.type == "cpu":
            quiescence.let_go(self.worker.pid)
            rested = quiescence.comes_to_rest(self.worker.pid, self.worker.init)
            self._hold()
        else:
            time.sleep(_SLOT_REST_S)
        with self.said.allowance.handling(self.slot_bytes):
            now = self._read(reply)
        if not all(same_bytes(old, new) for old, new in zip(sealed, now, strict=True)):
            self._report_late_work(
                Reason.OUTPUT_CHANGED,
                "an output changed after forward had returned: the work was not done by then",
            )
        if not rested:
            self._report_late_work(
                Reason.NEVER_RESTS,
                f"threads of the candidate went on working for {quiescence.PATIENCE_S:g} s after "
                "forward had returned; a pool must sleep between calls",
            )

    def _report_late_work(self, reason: Reason, message: str) -> None:
        if self.rejects_late_work:
            raise Rejection(Status.INTEGRITY, reason, message)
        self.late_work[reason] = message

    def borrowed(self, reply: Reply) -> Borrowed:
        """What the outputs share with others. Of the call whose context lasts; by the worker's word
        where they were copied, and nothing where that is into a CPU's slot."""
        sources = reply.sources or Sources((), (0, 0))
        inputs, found = [sources.inputs], [sources.outputs]
        if self._reads_in_place:
            inputs = quiescence.mapped_at(self.worker.pid, self._inputs_fd)
            found.append(reply.outputs)
        return Borrowed(
            any(lies_within(outputs, inputs) for outputs in found),
            any(map(any_overlap, found)),
            any(map(any_repeats, found)),
        )

    def outputs(self, reply: Reply, expected: list[torch.Tensor]) -> list[torch.Tensor]:
        """The outputs, sealed: copied out of the worker's reach. Raises `Rejection`.

        One whose shape or dtype is not what was expected is not read: it comes without values.
        """
        wanted = [(tuple(t.shape), t.dtype) for t in expected]
        layouts = [(layout.shape, getattr(torch, layout.dtype)) for layout in reply.outputs]
        if layouts != wanted:
            return [torch.empty(shape, dtype=dtype, device="meta") for shape, dtype in layouts]
        self._sealed = outputs = self._read(reply, self._taken)
        return outputs

    def _read(self, reply: Reply, taken: torch.Tensor | None = None) -> list[torch.Tensor]:
        if not self._reads_in_place:
            slot = self._slot.clone() if taken is None else taken
            return in_slot(slot, reply.outputs, itertools.cycle(self._orders))
        self._stop()
        try:
            return [
                from_worker(self.worker.pid, layout, order)
                for layout, order in zip(reply.outputs, itertools.cycle(self._orders), strict=False)
            ]
        except OSError as error:
            if quiescence.is_gone(self.worker.pid):
                raise self.said.death("call") from None
            raise protocol_broken(f"an output lies nowhere: {error.strerror}") from None

    def close(self) -> None:
        self.worker.end()
        if self._outputs is not None:
            self._outputs.close()
            self._outputs = None


class WorkerMemory:
    """What one worker holds on its device beyond what it held when this was made.

    On a GPU this is what its process has reserved there: its weights, what PyTorch's allocator
    keeps for its calls, workspaces of libraries and loaded kernels. Memory that a candidate frees
    within a call without PyTorch's allocator is not seen. Make it once the worker has its context,
    and while nothing else comes or goes on the device. On a CPU it is the largest resident set.
    """

    def __init__(self, device: torch.device, pid: int, held_bytes: int = 0) -> None:
        self._device = device
        self._pid = pid
        before = self._held_bytes()
        self._before = None if before is None else before - held_bytes

    def most_bytes(self, slot_bytes: int = 0) -> int | None:
        """The most so far, without the slot for outputs; None where the system does not say."""
        now = self._held_bytes(most=True)
        if now is None or self._before is None:
            return None
        return max(0, now - self._before - (slot_bytes if self._device.type == "cuda" else 0))

    def _held_bytes(self, *, most: bool = False) -> int | None:
        if self._device.type == "cuda":
            free, total = torch.cuda.mem_get_info(self._device)
            return int(total - free - torch.cuda.memory_reserved(self._device))
        status = kilobyte_fields(Path(f"/proc/{self._pid}/status"))
        return status.get("VmHWM" if most else "VmRSS")


def _decoded(message: Message) -> Reply:
    try:
        return Reply.decode(message.payload)
    except ValueError as error:
        raise protocol_broken(f"a malformed reply: {error}") from None
