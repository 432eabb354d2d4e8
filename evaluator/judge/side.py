"""One side of a comparison: a worker with a constructed module, and the calls made of it."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from evaluator.build_request import (
    BuildOutcome,
    BuildRequest,
    decode_request,
    encode_outcome,
)
from evaluator.evaluation import BuildReport, Status
from evaluator.failure import Failure
from evaluator.judge.arena import Arena, make_arena
from evaluator.judge.process import WorkerProcess
from evaluator.judge.refusal import Refusal
from evaluator.reply import Reply
from evaluator.wire import ClosedError, Kind, Message, WireError, WireTimeoutError

Fit = Literal["none", "named", "ordered", "seeded"]
FITS: tuple[Fit, ...] = ("none", "named", "ordered", "seeded")
Build = Callable[[BuildRequest], BuildOutcome]
_POISON = range(3, 255)


@dataclass(frozen=True)
class Call:
    """One call as the judge's clock and the worker's claims describe it, times in microseconds."""

    total_us: float
    """From the start signal until every output lay in the slot."""
    forward_us: float
    """Until forward had returned: the worker's own word."""
    wall_us: float
    """Like `total_us`, always by the judge's clock."""
    reply: Reply


class Side:
    """A worker that has imported its source and can be called again and again."""

    def __init__(self, worker: WorkerProcess, device: torch.device, call_timeout_s: float) -> None:
        self.worker = worker
        self.device = device
        self.fit: Fit = "none"
        self.build: BuildReport | None = None
        self.poison = 0
        self._call_timeout_s = call_timeout_s
        self._outputs: Arena | None = None

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
        }
        self.worker.channel.send(Kind.LOAD, json.dumps(order).encode())
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
            self.worker.channel.send(Kind.BUILT, told)
            return
        fd = os.open(outcome.library, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.worker.channel.send(Kind.BUILT, told, (fd,))
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
            "inputs": {"size": inputs.size, "writable": inputs_writable},
            "outputs": {"size": self._outputs.size},
            "compile": compiled,
        }
        fds = (weights.fd, inputs.fd, self._outputs.fd)
        self.worker.channel.send(Kind.CONSTRUCT, json.dumps(order).encode(), fds)
        message = self._receive("construct", timeout_s, {Kind.CONSTRUCTED})
        code = message.payload[0] if message.payload else len(FITS)
        if code >= len(FITS):
            raise Refusal(Status.INTEGRITY, "protocol_broken", "an unknown fit of weights")
        self.fit = FITS[code]
        return self.fit

    def call(self, arguments: Any, *, timeout_s: float | None = None) -> Call:
        """Call the module once on what lies in the input arena; raises `Refusal`.

        The slot for outputs is poisoned before. On a GPU the device must be idle.
        """
        assert self._outputs is not None
        self.poison = random.SystemRandom().choice(_POISON)
        self._outputs.bytes.fill_(self.poison)
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        limit = self._call_timeout_s if timeout_s is None else timeout_s
        self.worker.channel.send(Kind.PREPARE, json.dumps({"arguments": arguments}).encode())
        self._receive("call", limit, {Kind.PREPARED})
        begin = time.perf_counter_ns()
        self.worker.channel.send(Kind.GO)
        self._receive("call", limit, {Kind.RETURNED})
        returned = time.perf_counter_ns()
        message = self._receive("call", limit, {Kind.DONE})
        end = time.perf_counter_ns()
        try:
            reply = Reply.decode(message.payload)
        except ValueError as error:
            raise Refusal(
                Status.INTEGRITY, "protocol_broken", f"a malformed reply: {error}"
            ) from None
        wall_us = (end - begin) / 1e3
        if self.device.type == "cuda":
            return Call(reply.total_us, reply.forward_us, wall_us, reply)
        return Call(wall_us, (returned - begin) / 1e3, wall_us, reply)

    def outputs(self, reply: Reply) -> list[torch.Tensor]:
        """The outputs, sealed: copied out of the worker's reach. Raises `Refusal`."""
        assert self._outputs is not None
        sealed = []
        for layout in reply.outputs:
            dtype: torch.dtype = getattr(torch, layout.dtype)
            count = 1
            for size in layout.shape:
                count *= size
            end = layout.offset + count * dtype.itemsize
            if layout.offset % dtype.itemsize or end > self._outputs.size:
                raise Refusal(Status.INTEGRITY, "protocol_broken", "an output outside its slot")
            flat = self._outputs.bytes[layout.offset : end].view(dtype)
            sealed.append(flat.view(layout.shape).clone())
        return sealed

    def close(self) -> None:
        """End the worker and give its slot back."""
        self.worker.end()
        if self._outputs is not None:
            self._outputs.close()
            self._outputs = None

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


_NAMES = {"import": "import", "construct": "construction of the module", "call": "call of forward"}
_REASONS = {"import": "import", "construct": "construct", "call": "forward"}
