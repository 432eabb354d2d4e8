"""What is known of one call of a worker's module."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.ipc.reply import Reply


@dataclass(frozen=True)
class Call:
    """One call as the judge's clock and the worker's claims describe it, times in microseconds."""

    forward_us: float
    """On a CPU by the judge's clock, from the start signal until the word that forward returned.
    On a GPU the worker's claim, by device events."""
    total_us: float
    """Like `forward_us`, with the copy into the slot where there is one."""
    wall_us: float
    """Until everything was done, always by the judge's clock; on a GPU by its events (`Gate`)."""
    prepare_us: float
    """Outside the call: on a CPU what it took the worker to get ready before, and to stand still
    afterwards; on a GPU what it took the device to lay the inputs, 0 where these came from the
    host. A worker that computes meanwhile makes these longer."""
    reply: Reply
    was_held: bool = False
    """On a GPU: all of the call was enqueued before the start."""
