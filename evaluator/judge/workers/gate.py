"""Where a GPU's worker is let go, and where it says that it has done its call: two words.

They lie at the end of the slot for outputs, which both processes map. The worker's stream waits for
the first word, and writes the second one after the copy of its outputs. The judge's stream waits
for that. So the judge's own events tell how long the device was given away, whatever the worker
claims. What the judge has enqueued behind sees the outputs as they were at that moment.
"""

from __future__ import annotations

import time
from functools import cache

import torch

from evaluator.hardware.cuda_memory import hold_stream
from evaluator.ipc.reply import GATE_BYTES
from evaluator.judge.rejection import protocol_broken

_PATIENCE_S = 5.0
"""The worker has waited for its device before it replies, so the word is there by then."""


class Gate:
    def __init__(self, slot: torch.Tensor) -> None:
        """Closed. `slot`: uint8, with the words in its last 256 bytes. Waits for the device."""
        self._words = slot[-GATE_BYTES:].view(torch.int32)
        self._words[:2].zero_()
        # Not for the first time when the judge's own stream waits already.
        self._other = _other_stream(slot.device)
        self._other.wait_stream(torch.cuda.current_stream(slot.device))
        with torch.cuda.stream(self._other):
            self._words[1:2].zero_()
        self._finish = torch.cuda.Event(enable_timing=True)
        self.start = torch.cuda.Event(enable_timing=True)
        """When the worker was let go."""
        torch.cuda.synchronize(slot.device)

    def open(self) -> None:
        self.start.record()
        self._words[:1].fill_(1)

    def await_end(self) -> None:
        stream = torch.cuda.current_stream(self._words.device).cuda_stream
        hold_stream(stream, self._words[1:].data_ptr(), 1)
        self._finish.record()

    def taken_us(self) -> float:
        """From letting go to the end of the call; the worker has replied. Raises `Rejection`."""
        deadline = time.monotonic() + _PATIENCE_S
        while not self._finish.query():
            if time.monotonic() > deadline:
                self.give_up()
                raise protocol_broken("the worker never wrote that it was done")
        return float(self.start.elapsed_time(self._finish)) * 1e3

    def give_up(self) -> None:
        """Let the judge's stream go on, though the worker has not finished."""
        with torch.cuda.stream(self._other):
            self._words[1:2].fill_(1)
        torch.cuda.synchronize(self._words.device)


@cache
def _other_stream(device: torch.device) -> torch.cuda.Stream:
    """Of another priority than the one that waits, so that the two share no queue of the device."""
    return torch.cuda.Stream(device, priority=-1)
