"""Where a target is served by the process that started it: builds, and the device.

The target runs a candidate, so what it asks for is served as the judge serves a worker: libraries
come from the trusted builder, as sealed memory. A target that breaks the protocol gets no answer.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable
from pathlib import Path

from evaluator.builder.builder import Builder
from evaluator.builder.handover import sealed
from evaluator.errors import KernelEndedError, ProfilerError
from evaluator.hardware.device_lock import device_lock
from evaluator.hardware.devices import describe
from evaluator.ipc.build_request import BuildRequest
from evaluator.ipc.socket_file import short_name
from evaluator.ipc.wire import Channel, ClosedError, Kind, Message, WireError, WireTimeoutError
from problems.cache_folder import cache_folder

SOCKET = "broker"
_LOOK_S = 0.2
"""How soon it is seen that a target has ended while something it started holds the line."""

Ended = Callable[[], bool]
"""Asked now and then whether what runs is to be ended."""


def never() -> bool:
    return False


class Broker:
    """Serves one target. Use it as a context: the device is held, once asked for, until its end."""

    def __init__(self, device: str, ended: Ended = never) -> None:
        """`ended`: whether the target is to be ended, as if its time were over."""
        self.ended = ended
        self._device = device
        self._builder: Builder | None = None
        self._held = contextlib.ExitStack()
        self._deadline = 0.0
        self._holds = False
        self.libraries: list[Path] = []
        """Those in the cache whose content was handed out."""

    def serve(
        self, channel: Channel, timeout_s: float, runs: Callable[[], bool] = lambda: True
    ) -> float:
        """Answer until the target is done or no longer `runs`; the seconds that are left then.

        Waiting for the device is not counted. Raises `WireError` for what is no question, and
        `WireTimeoutError`, one of its kinds, when the time is over.
        """
        self._deadline = time.monotonic() + timeout_s
        while True:
            # Also where it never stops asking.
            if time.monotonic() > self._deadline or self.ended():
                raise WireTimeoutError
            if channel.ready(min(_LOOK_S, self._left_s())):
                try:
                    message = channel.receive(self._left_s())
                except ClosedError:
                    break
                if message.kind is Kind.DONE:
                    break
                self._answer(channel, message)
            elif not runs():
                break
        return self._left_s()

    def error(self, why: str) -> ProfilerError:
        """For a target that failed: once it holds the device, a kernel has run in it."""
        return (KernelEndedError if self._holds else ProfilerError)(why)

    def _left_s(self) -> float:
        return max(0.1, self._deadline - time.monotonic())

    def _answer(self, channel: Channel, message: Message) -> None:
        if message.kind is Kind.BUILD:
            self._build(channel, message.payload)
        elif message.kind is Kind.DEVICE and not self._holds:
            asked = time.monotonic()
            self._held.enter_context(device_lock(self._device))
            self._holds = True
            self._deadline += time.monotonic() - asked
            self._say(channel, Kind.HELD)
        else:
            raise WireError(f"{message.kind.name} out of turn")

    def _say(
        self, channel: Channel, kind: Kind, payload: bytes = b"", fds: tuple[int, ...] = ()
    ) -> None:
        # To one that may not read it.
        channel.send(kind, payload, fds, timeout_s=self._left_s())

    def _build(self, channel: Channel, payload: bytes) -> None:
        try:
            request = BuildRequest.decode(payload)
        except ValueError as error:
            raise WireError(f"a malformed build request: {error}") from None
        if self._builder is None:
            self._builder = Builder(
                cache_folder(), cuda_arch=describe(self._device).cuda_architecture
            )
        outcome = self._builder.build(request, max(1.0, self._left_s()))
        if outcome.ok:
            self.libraries.append(Path(outcome.library))
        with sealed(outcome) as library:
            self._say(channel, Kind.BUILT, outcome.encode(), library)

    def __enter__(self) -> Broker:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()


def listening(folder: Path) -> socket.socket:
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_name(folder / SOCKET) as name:
            end.bind(name)
        # The folder belongs to the target's user by now: no other user can enter it.
        (folder / SOCKET).chmod(0o666)
        end.listen(1)
    except BaseException:
        end.close()
        raise
    return end
