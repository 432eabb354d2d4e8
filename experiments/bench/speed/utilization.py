"""How busy GPUs are by their driver's account: kernels of anybody's, not the candidate's alone."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from evaluator.hardware.nvml import device_index, nvml_handles, nvml_library

_PERIOD_S = 0.25
"""The driver's own period lies between 1/6 and 1 s (nvml.h, nvmlUtilization_t)."""


@dataclass(frozen=True)
class Sample:
    """The mean over some devices of the share of a period in which a kernel ran."""

    at_s: float
    """On the monotonic clock."""
    share: float


@contextlib.contextmanager
def utilization_watch(devices: Sequence[str]) -> Iterator[list[Sample]]:
    """Samples while it is open; none for a CPU, without a driver or where that can't tell."""
    samples: list[Sample] = []
    with nvml_library() as nvml:
        if nvml is None or "cpu" in devices:
            yield samples
            return
        every = nvml_handles(nvml)
        handles = [every[device_index(device)] for device in devices]
        closed = threading.Event()

        def watch() -> None:
            with contextlib.suppress(nvml.NVMLError_NotSupported):  # such as a slice by MIG
                while not closed.wait(_PERIOD_S):
                    rates = [nvml.nvmlDeviceGetUtilizationRates(handle) for handle in handles]
                    share = fmean(rate.gpu for rate in rates) / 100
                    samples.append(Sample(time.monotonic(), share))

        thread = threading.Thread(target=watch, name="utilization")
        thread.start()
        try:
            yield samples
        finally:
            closed.set()
            thread.join()


def mean_share(samples: Sequence[Sample], since_s: float) -> float | None:
    """The mean of the samples from then on; None if there are none."""
    shares = [sample.share for sample in samples if sample.at_s >= since_s]
    return fmean(shares) if shares else None
