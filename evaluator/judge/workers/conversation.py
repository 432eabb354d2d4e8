"""What the judge and one worker say to each other; a worker that breaks it off is refused."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

from evaluator.builder.handover import Build, sealed
from evaluator.evaluation import BuildReport, Status
from evaluator.ipc.build_request import BuildRequest
from evaluator.ipc.failure import Failure, Phase
from evaluator.ipc.wire import ClosedError, Kind, Message, WireError, WireTimeoutError
from evaluator.judge.rejection import Rejection, protocol_broken
from evaluator.judge.workers.allowance import Allowance
from evaluator.judge.workers.process import WorkerProcess
from evaluator.reason import Reason
from evaluator.worker.values import TensorSubclassError

_PHASES: dict[Phase, tuple[str, Reason, Reason]] = {
    "import": ("import", Reason.IMPORT_TIMEOUT, Reason.IMPORT_RAISED),
    "construct": ("construction of the module", Reason.CONSTRUCT_TIMEOUT, Reason.CONSTRUCT_RAISED),
    "call": ("call of forward", Reason.CALL_TIMEOUT, Reason.FORWARD_RAISED),
}
"""What we call each, and why a candidate is refused that takes too long, or raises, in it."""
_BUILD_FAILED = "Error building extension"
"""PyTorch's words, and our stub's."""
_READING_S = 60.0
"""For how long a worker may not read: a message fits the socket's buffer where it reads."""
_ENDED = {
    "SIGSEGV": Reason.SEGFAULT,
    "SIGABRT": Reason.ABORT,
    "SIGKILL": Reason.KILLED,
    "SIGBUS": Reason.SIGBUS,
    "SIGFPE": Reason.SIGFPE,
    "SIGILL": Reason.SIGILL,
    "SIGTRAP": Reason.SIGTRAP,
    "SIGSYS": Reason.SIGSYS,
}


class Conversation:
    def __init__(self, worker: WorkerProcess) -> None:
        self.worker = worker
        self.build: BuildReport | None = None
        """What came of all builds that it asked for; None before the first."""
        self.allowance = Allowance()  # no answer is waited for any longer

    def serve_build(self, payload: bytes, build: Build) -> None:
        """Build what the worker asks for and hand it the library; raises `Rejection`.

        A compiler that ran into its limit is the candidate's end, even if it could do without: its
        device would be held for as long again at each size.
        """
        try:
            request = BuildRequest.decode(payload)
        except ValueError as error:
            raise protocol_broken(f"a malformed build request: {error}") from None
        outcome, before = build(request), self.build
        self.build = BuildReport(
            ok=outcome.ok and (before is None or before.ok),
            seconds=outcome.seconds + (before.seconds if before else 0.0),
            headers="full" if before and before.headers == "full" else outcome.headers,
            cached=outcome.cached and (before is None or before.cached),
            log=outcome.log if not outcome.ok or before is None else before.log,
            timed_out=outcome.timed_out or (before is not None and before.timed_out),
        )
        if outcome.timed_out:
            raise self._unbuilt()
        with sealed(outcome) as library:
            self.send(Kind.BUILT, replace(outcome, library="").encode(), library)

    def send(self, kind: Kind, payload: bytes = b"", fds: tuple[int, ...] = ()) -> None:
        limit_s = max(0.1, min(_READING_S, self.allowance.left_s))
        try:
            # A worker that has died shows by the answer that does not come.
            with self.allowance.waiting(), suppress(ClosedError):
                self.worker.channel.send(kind, payload, fds, timeout_s=limit_s)
        except WireTimeoutError:
            self.worker.end()
            raise protocol_broken("the worker does not read what it is sent") from None

    def receive_building(
        self, phase: Phase, timeout_s: float, expected: Kind, build: Build
    ) -> Message:
        """The worker's word, after whatever it has asked to be built on the way.

        Sources are built at import by most candidates, by some in `__init__` or a first call. What
        a build takes does not count towards the limit; in a call that is timed it counts as the
        candidate's time.
        """
        spent_s = 0.0
        while True:
            begin = time.monotonic()
            message = self.receive(phase, timeout_s, {Kind.BUILD, expected}, spent_s)
            if message.kind is expected:
                return message
            spent_s += time.monotonic() - begin
            self.serve_build(message.payload, build)

    def receive(
        self, phase: Phase, timeout_s: float, expected: set[Kind], spent_s: float = 0.0
    ) -> Message:
        """The worker's next word, one of those expected; anything else raises `Rejection`.

        `spent_s`: what it has used up of `timeout_s` before.
        """
        own_s, left_s = max(0.0, timeout_s - spent_s), self.allowance.left_s
        try:
            with self.allowance.waiting():
                message = self.worker.channel.receive(min(own_s, left_s))
        except WireTimeoutError:
            self.worker.end()
            name, reason, _ = _PHASES[phase]
            if left_s < own_s:
                name, timeout_s = "candidate in all its imports and calls", self.allowance.limit_s
            late = f"the {name} took longer than {timeout_s:.4g} s and was ended"
            raise Rejection(Status.TIMEOUT, reason, late) from None
        except ClosedError:
            raise self.death(phase) from None
        except WireError as error:
            raise protocol_broken(str(error)) from None
        if message.kind is Kind.FAILED:
            raise self._failure(message.payload)
        if message.kind not in expected:
            raise protocol_broken(f"{message.kind.name} out of turn")
        return message

    def _failure(self, payload: bytes) -> Rejection:
        try:
            failure = Failure.decode(payload)
        except ValueError as error:
            return protocol_broken(f"a malformed failure: {error}")
        builds = failure.phase == "import" or _BUILD_FAILED in failure.summary
        if builds and self.build is not None and not self.build.ok:
            return self._unbuilt()
        if failure.error == "SyntaxError":
            reason = Reason.SYNTAX_ERROR
        elif failure.error == "NameError" and "defines no class" in failure.summary:
            reason = Reason.NO_MODEL_NEW
        elif failure.error == TensorSubclassError.__name__:
            message = "forward returned a subclass of Tensor, which may work late: return a tensor"
            return Rejection(Status.INTEGRITY, Reason.TENSOR_SUBCLASS, message)
        else:
            reason = _PHASES[failure.phase][2]
        what = f"{_PHASES[failure.phase][0]}: {failure.summary}"
        return Rejection(Status.RUNTIME_ERROR, reason, what, detail=failure.trace)

    def _unbuilt(self) -> Rejection:
        assert self.build is not None
        return Rejection(
            Status.BUILD_ERROR,
            Reason.COMPILE_FAILED,
            "the inline sources do not build",
            detail=self.build.log[-2000:],
        )

    def death(self, phase: Phase) -> Rejection:
        ending = self.worker.end(grace_s=5.0)
        name = ending.signal_name
        if name:
            reason = _ENDED.get(name, Reason.OTHER_SIGNAL)
            what = f"the process was ended by {name} during the {_PHASES[phase][0]}"
            if reason is Reason.KILLED and ending.out_of_memory:
                reason = Reason.OUT_OF_MEMORY
                what += ": with what it started it used more memory than it may"
        else:
            reason = Reason.EXITED
            what = f"the process exited (code {ending.status}) during the {_PHASES[phase][0]}"
        return Rejection(Status.RUNTIME_ERROR, reason, what, detail=ending.log)
