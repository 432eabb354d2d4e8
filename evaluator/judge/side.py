"""One side of a comparison: a worker with a constructed module, and the calls made of it."""

from __future__ import annotations

import json
import math
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch

from evaluator.build_request import (
    BuildOutcome,
    BuildRequest,
    decode_request,
    encode_outcome,
)
from evaluator.evaluation import BuildReport, Mismatch, Status
from evaluator.failure import Failure
from evaluator.judge.arena import Arena, make_arena
from evaluator.judge.foreign_memory import can_read, read_memory, standing_still
from evaluator.judge.placement import span_of
from evaluator.judge.process import WorkerProcess
from evaluator.judge.refusal import Refusal
from evaluator.reply import OutputLayout, Reply
from evaluator.sealed import sealed_copy
from evaluator.wire import ClosedError, Kind, Message, WireError, WireTimeoutError

Fit = Literal["none", "named", "ordered", "seeded"]
FITS: tuple[Fit, ...] = ("none", "named", "ordered", "seeded")
Build = Callable[[BuildRequest], BuildOutcome]
_POISON = range(3, 255)
_WIDEST_VIEW = 2**30
"""Bytes from the first to the last element, in a view of a much larger tensor."""


@dataclass(frozen=True)
class Call:
    """One call as the judge's clock and the worker's claims describe it, times in microseconds."""

    forward_us: float
    """On a CPU by the judge's clock, from the start signal until the word that forward returned.
    On a GPU the worker's claim, by device events."""
    total_us: float
    """Like `forward_us`, with the copy into the slot where there is one."""
    wall_us: float
    """Until everything was done, always by the judge's clock."""
    reply: Reply


class Side:
    """A worker that has imported its source and can be called again and again."""

    def __init__(self, worker: WorkerProcess, device: torch.device, call_timeout_s: float) -> None:
        self.worker = worker
        self.device = device
        self.fit: Fit = "none"
        self.build: BuildReport | None = None
        self.poison: int | None = None
        self.copies_inputs = False
        """Whether the worker calls its module on copies of the inputs, each in a heap block of its
        own, of which a sanitizer knows the bounds. For audits; never for what is timed."""
        self.growth_bytes: int | None = None
        """What the worker may still write to beyond what it holds, where its address space has no
        limit."""
        self._call_timeout_s = call_timeout_s
        self._outputs: Arena | None = None
        self._readable = device.type == "cpu" and can_read(worker.pid)

    def load(
        self,
        source: str,
        class_name: str,
        *,
        threads: int,
        dtype: torch.dtype,
        tf32: bool | None,
        triton: bool,
        build: Build,
        import_timeout_s: float,
    ) -> None:
        """Import the source in the worker, building what it asks for; raises `Refusal`."""
        order = {
            "source": source,
            "class_name": class_name,
            "device": str(self.device),
            "dtype": str(dtype).removeprefix("torch."),
            "threads": threads,
            "tf32": tf32,
            "triton": triton,
            "growth_bytes": self.growth_bytes,
        }
        self._send(Kind.LOAD, json.dumps(order).encode())
        while True:
            message = self._receive("import", import_timeout_s, {Kind.BUILD, Kind.IMPORTED})
            if message.kind is Kind.IMPORTED:
                return
            self._serve_build(message.payload, build)

    def _serve_build(self, payload: bytes, build: Build) -> None:
        try:
            request = decode_request(payload)
        except ValueError as error:
            raise Refusal(
                Status.INTEGRITY, "protocol_broken", f"a malformed build request: {error}"
            ) from None
        outcome = build(request)
        before = self.build
        self.build = BuildReport(
            ok=outcome.ok and (before is None or before.ok),
            seconds=outcome.seconds + (before.seconds if before else 0.0),
            headers="full" if before and before.headers == "full" else outcome.headers,
            cached=outcome.cached and (before is None or before.cached),
            log=outcome.log if not outcome.ok or before is None else before.log,
        )
        told = encode_outcome(replace(outcome, library=""))
        if not outcome.ok:
            self._send(Kind.BUILT, told)
            return
        fd = sealed_copy(Path(outcome.library))
        try:
            self._send(Kind.BUILT, told, (fd,))
        finally:
            os.close(fd)

    def construct(
        self,
        *,
        seed: int,
        arguments: Any,
        tensors: list[dict[str, Any]],
        weights: Arena,
        inputs: Arena,
        inputs_writable: bool,
        output_bytes: int,
        compiled: bool,
        timeout_s: float,
    ) -> Fit:
        """Build the module and give it its weights; how they fitted. Raises `Refusal`."""
        self._outputs = make_arena(self.device, output_bytes, read_only_for_others=False)
        order = {
            "seed": seed,
            "arguments": arguments,
            "tensors": tensors,
            "weights": {"size": weights.size},
            "inputs": {
                "size": inputs.size,
                "writable": inputs_writable,
                "copied": self.copies_inputs,
            },
            "outputs": {"size": self._outputs.size},
            "compile": compiled,
        }
        fds = (weights.fd, inputs.fd, self._outputs.fd)
        self._send(Kind.CONSTRUCT, json.dumps(order).encode(), fds)
        message = self._receive("construct", timeout_s, {Kind.CONSTRUCTED})
        code = message.payload[0] if message.payload else len(FITS)
        if code >= len(FITS):
            raise Refusal(Status.INTEGRITY, "protocol_broken", "an unknown fit of weights")
        self.fit = FITS[code]
        return self.fit

    @contextmanager
    def call(self, arguments: Any, *, timeout_s: float | None = None) -> Iterator[Call]:
        """Call the module once on what lies in the input arena; raises `Refusal`.

        The outputs can be read while the context lasts; afterwards the worker may go on. The slot
        for outputs is poisoned before. On a GPU the device must be idle.
        """
        assert self._outputs is not None
        limit = self._call_timeout_s if timeout_s is None else timeout_s
        copied = self.device.type == "cuda" or not self._readable
        if copied:
            self.poison = random.SystemRandom().choice(_POISON)
            self._outputs.bytes.fill_(self.poison)
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        order = json.dumps({"arguments": arguments, "copy": copied})
        self._send(Kind.PREPARE, order.encode())
        self._receive("call", limit, {Kind.PREPARED})
        begin = time.perf_counter_ns()
        self._send(Kind.GO)
        if self.device.type == "cuda":
            message = self._receive("call", limit, {Kind.DONE})
            wall_us = (time.perf_counter_ns() - begin) / 1e3
            reply = _decoded(message)
            yield Call(reply.forward_us, reply.total_us, wall_us, reply)
            return
        message = self._receive("call", limit, {Kind.RETURNED})
        forward_us = wall_us = total_us = (time.perf_counter_ns() - begin) / 1e3
        if copied:
            self._send(Kind.RELEASE)
            message = self._receive("call", limit, {Kind.DONE})
            wall_us = total_us = (time.perf_counter_ns() - begin) / 1e3
        yield Call(forward_us, total_us, wall_us, _decoded(message))
        if not copied:
            self._send(Kind.RELEASE)

    def outputs(self, reply: Reply, expected: list[torch.Tensor]) -> list[torch.Tensor]:
        """The outputs, sealed: copied out of the worker's reach. Raises `Refusal`.

        One whose shape or dtype is not what was expected is not read: it comes without values.
        """
        wanted = [(tuple(t.shape), t.dtype) for t in expected]
        layouts = [(layout.shape, getattr(torch, layout.dtype)) for layout in reply.outputs]
        if layouts != wanted:
            return [torch.empty(shape, dtype=dtype, device="meta") for shape, dtype in layouts]
        if self.device.type == "cuda" or not self._readable:
            return [self._from_slot(layout) for layout in reply.outputs]
        with standing_still(self.worker.pid):
            return [self._from_worker(number, each) for number, each in enumerate(reply.outputs)]

    def _from_slot(self, layout: OutputLayout) -> torch.Tensor:
        assert self._outputs is not None
        dtype: torch.dtype = getattr(torch, layout.dtype)
        end = layout.place + math.prod(layout.shape) * dtype.itemsize
        if layout.place % dtype.itemsize or end > self._outputs.size:
            raise Refusal(Status.INTEGRITY, "protocol_broken", "an output outside its slot")
        flat = self._outputs.bytes[layout.place : end].view(dtype)
        return flat.view(layout.shape).clone()

    def _from_worker(self, number: int, layout: OutputLayout) -> torch.Tensor:
        dtype: torch.dtype = getattr(torch, layout.dtype)
        span = span_of(layout.shape, layout.stride)
        if span > 4 * math.prod(layout.shape) and span * dtype.itemsize > _WIDEST_VIEW:
            raise Refusal(
                Status.INCORRECT,
                "wrong_layout",
                f"output {number}, of shape {layout.shape}, is a view with strides {layout.stride}"
                " into a tensor of more than 1 GiB; return a tensor of its own, as .contiguous()"
                " makes it",
                mismatch=Mismatch(output=number, kind="shape", actual_shape=layout.shape),
            )
        raw = torch.empty(span * dtype.itemsize, dtype=torch.uint8)
        try:
            read_memory(self.worker.pid, layout.place, raw)
        except OSError as error:
            raise Refusal(
                Status.INTEGRITY, "protocol_broken", f"an output lies nowhere: {error.strerror}"
            ) from None
        return torch.as_strided(raw.view(dtype), layout.shape, layout.stride).contiguous()

    def close(self) -> None:
        """End the worker and give its slot back."""
        self.worker.end()
        if self._outputs is not None:
            self._outputs.close()
            self._outputs = None

    def _send(self, kind: Kind, payload: bytes = b"", fds: tuple[int, ...] = ()) -> None:
        # Whoever is gone is found out by the answer that does not come.
        with suppress(ClosedError):
            self.worker.channel.send(kind, payload, fds)

    def _receive(self, phase: str, timeout_s: float, expected: set[Kind]) -> Message:
        try:
            message = self.worker.receive(timeout_s)
        except WireTimeoutError:
            self.worker.end()
            raise Refusal(
                Status.TIMEOUT,
                f"{phase}_timeout",
                f"the {_NAMES[phase]} took longer than {timeout_s:g} s and was ended",
            ) from None
        except ClosedError:
            raise self._death(phase) from None
        except WireError as error:
            raise Refusal(Status.INTEGRITY, "protocol_broken", str(error)) from None
        if message.kind is Kind.FAILED:
            raise self._failure(message.payload)
        if message.kind not in expected:
            raise Refusal(Status.INTEGRITY, "protocol_broken", f"{message.kind.name} out of turn")
        return message

    def _failure(self, payload: bytes) -> Refusal:
        try:
            failure = Failure.decode(payload)
        except ValueError as error:
            return Refusal(Status.INTEGRITY, "protocol_broken", f"a malformed failure: {error}")
        if failure.phase == "import" and self.build is not None and not self.build.ok:
            return Refusal(Status.BUILD_ERROR, "compile_failed", "the inline sources do not build")
        if failure.error == "SyntaxError":
            reason = "syntax_error"
        elif failure.error == "NameError" and "defines no class" in failure.summary:
            reason = "no_model_new"
        else:
            reason = f"{_REASONS[failure.phase]}_raised"
        return Refusal(
            Status.RUNTIME_ERROR,
            reason,
            f"{_NAMES[failure.phase]}: {failure.summary}",
            detail=failure.trace,
        )

    def _death(self, phase: str) -> Refusal:
        ending = self.worker.end(grace_s=5.0)
        name = ending.signal_name
        if name:
            reason = {"SIGSEGV": "segfault", "SIGABRT": "abort", "SIGKILL": "killed"}.get(
                name, name.lower()
            )
            what = f"the process was ended by {name} during the {_NAMES[phase]}"
        else:
            reason = "exited"
            what = f"the process exited (code {ending.status}) during the {_NAMES[phase]}"
        return Refusal(Status.RUNTIME_ERROR, reason, what, detail=ending.log)


def _decoded(message: Message) -> Reply:
    try:
        return Reply.decode(message.payload)
    except ValueError as error:
        raise Refusal(Status.INTEGRITY, "protocol_broken", f"a malformed reply: {error}") from None


_NAMES = {"import": "import", "construct": "construction of the module", "call": "call of forward"}
_REASONS = {"import": "import", "construct": "construct", "call": "forward"}
