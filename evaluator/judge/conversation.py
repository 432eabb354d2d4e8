"""What the judge and one worker say to each other; a worker that breaks it off is refused."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from evaluator.build_request import (
    BuildOutcome,
    BuildRequest,
    decode_request,
    encode_outcome,
)
from evaluator.evaluation import BuildReport, Status
from evaluator.failure import Failure
from evaluator.judge.process import WorkerProcess
from evaluator.judge.refusal import Refusal
from evaluator.sealed import sealed_copy
from evaluator.wire import ClosedError, Kind, Message, WireError, WireTimeoutError

Build = Callable[[BuildRequest], BuildOutcome]
_NAMES = {"import": "import", "construct": "construction of the module", "call": "call of forward"}
_BUILD_FAILED = "Error building extension"
"""PyTorch's words, and our stub's."""
_REASONS = {"import": "import", "construct": "construct", "call": "forward"}


class Conversation:
    """Messages to and from one worker, and the libraries that were built for it."""

    def __init__(self, worker: WorkerProcess) -> None:
        self.worker = worker
        self.build: BuildReport | None = None
        """What came of all builds that it asked for; None before the first."""
        self.deadline: float | None = None
        """By the monotonic clock: no answer is waited for any longer, whatever its own limit."""

    def serve_build(self, payload: bytes, build: Build) -> None:
        """Build what the worker asks for and hand it the library; raises `Refusal`."""
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
            timed_out=outcome.timed_out or (before is not None and before.timed_out),
        )
        told = encode_outcome(replace(outcome, library=""))
        if not outcome.ok:
            self.send(Kind.BUILT, told)
            return
        fd = sealed_copy(Path(outcome.library))
        try:
            self.send(Kind.BUILT, told, (fd,))
        finally:
            os.close(fd)

    def send(self, kind: Kind, payload: bytes = b"", fds: tuple[int, ...] = ()) -> None:
        """Say something, to nobody if need be."""
        # Whoever is gone is found out by the answer that does not come.
        with suppress(ClosedError):
            self.worker.channel.send(kind, payload, fds)

    def receive(self, phase: str, timeout_s: float, expected: set[Kind]) -> Message:
        """The worker's next word, one of those expected; anything else raises `Refusal`."""
        if self.deadline is not None:
            timeout_s = max(0.0, min(timeout_s, self.deadline - time.monotonic()))
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
            raise self.death(phase) from None
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
        builds = failure.phase == "import" or _BUILD_FAILED in failure.summary
        if builds and self.build is not None and not self.build.ok:
            return Refusal(
                Status.BUILD_ERROR,
                "compile_failed",
                "the inline sources do not build",
                detail=self.build.log[-2000:],
            )
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

    def death(self, phase: str) -> Refusal:
        """What to say of a worker that is gone; ends what is left of it."""
        ending = self.worker.end(grace_s=5.0)
        name = ending.signal_name
        if name:
            reason = {"SIGSEGV": "segfault", "SIGABRT": "abort", "SIGKILL": "killed"}.get(
                name, name.lower()
            )
            what = f"the process was ended by {name} during the {_NAMES[phase]}"
            if reason == "killed" and ending.out_of_memory:
                reason = "out_of_memory"
                what += ": with what it started it used more memory than it may"
        else:
            reason = "exited"
            what = f"the process exited (code {ending.status}) during the {_NAMES[phase]}"
        return Refusal(Status.RUNTIME_ERROR, reason, what, detail=ending.log)
