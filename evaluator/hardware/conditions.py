"""In what state a device is just now: what a reader of a measured time will want to know."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from evaluator.hardware.cores import usable_cores
from evaluator.hardware.kernel_files import read_text
from evaluator.hardware.nvml import device_index, nvml_handles, nvml_library

Conditions = dict[str, str | int | float | bool | None]


def conditions(device: str) -> Conditions:
    """The device's state now, for the record: load, clocks, throttling, temperature, others on it.

    `cpu_steal_s` and `cpu_throttled_s` count since boot: look at the difference of two calls.
    """
    state: Conditions = {
        "load_average_1m": round(os.getloadavg()[0], 2),
        "cores": usable_cores(),
        "cpu_steal_s": steal_seconds(),
        "cpu_throttled_s": quota_seconds(),
    }
    governor = read_text(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
    if governor:
        state["cpu_governor"] = governor
    if device != "cpu":
        with nvml_library() as nvml:
            handles = nvml_handles(nvml) if nvml is not None else []
            if nvml is not None and device_index(device) < len(handles):
                state |= _gpu_conditions(nvml, handles[device_index(device)])
    return state


def steal_seconds() -> float:
    """Time since boot that the hypervisor gave to others, all processors together."""
    fields = read_text(Path("/proc/stat")).partition("\n")[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK") if len(fields) > 8 else 0.0


def quota_seconds() -> float:
    """Time for which this control group was stopped because its quota was used up; 0: no quota."""
    found = re.search(r"^throttled_usec (\d+)", read_text(Path("/sys/fs/cgroup/cpu.stat")), re.M)
    return int(found[1]) / 1e6 if found else 0.0


_REASONS = {
    0x4: "power_cap",
    0x8: "hardware_slowdown",
    0x10: "sync_boost",
    0x20: "thermal",
    0x40: "hardware_thermal",
    0x80: "power_brake",
}
"""NVML's clock event reasons that slow a busy device (nvml.h, nvmlClocksEventReasons)."""

SLOWDOWNS = 0x8 | 0x20 | 0x40 | 0x80
"""Those among them that come and go from outside: a power cap is how a busy device runs."""


def _gpu_conditions(nvml: ModuleType, handle: object) -> Conditions:
    def ask(question: Callable[..., Any], *arguments: object) -> Any:
        try:
            return question(handle, *arguments)
        except nvml.NVMLError:
            return None

    reasons = ask(nvml.nvmlDeviceGetCurrentClocksThrottleReasons)
    power, limit = ask(nvml.nvmlDeviceGetPowerUsage), ask(nvml.nvmlDeviceGetEnforcedPowerLimit)
    running = ask(nvml.nvmlDeviceGetComputeRunningProcesses)
    return {
        "sm_clock_mhz": ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM),
        "sm_clock_max_mhz": ask(nvml.nvmlDeviceGetMaxClockInfo, nvml.NVML_CLOCK_SM),
        "memory_clock_mhz": ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_MEM),
        "temperature_c": ask(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU),
        "power_w": None if power is None else power / 1000,
        "power_limit_w": None if limit is None else limit / 1000,
        "throttled": None
        if reasons is None
        else ",".join(name for bit, name in _REASONS.items() if reasons & bit),
        "other_processes": None
        if running is None
        else sum(not _is_ours(pid) for pid in {int(process.pid) for process in running}),
    }


def _is_ours(pid: int) -> bool:
    while pid > 1 and pid != os.getpid():
        fields = read_text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
        pid = int(fields[1]) if len(fields) > 1 else 0
    return pid == os.getpid()
