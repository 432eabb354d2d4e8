"""The devices at hand: what they are, without torch or a CUDA context."""

from __future__ import annotations

import contextlib
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Literal

from evaluator.hardware.cores import usable_cores
from evaluator.hardware.kernel_files import kilobyte_fields, read_text
from evaluator.hardware.nvml import device_index, nvml_handles, nvml_library
from evaluator.hardware.published import (
    CORES_PER_SM,
    REGISTERS_PER_SM,
    SHARED_MEMORY,
    THREADS_PER_SM,
    published,
)
from problems.errors import UsageError

_FLAGS = ("avx2", "fma", "f16c", "avx_vnni", "avx512f", "avx512bw", "avx512_bf16", "avx512_fp16",
          "amx_tile", "amx_bf16", "asimd", "sve")  # fmt: skip
_SYSTEM_CPU = Path("/sys/devices/system/cpu")


@dataclass(frozen=True)
class DeviceInfo:
    """One device. Sizes in bytes; zero or empty where it is not known or does not apply."""

    name: str
    kind: Literal["cpu", "cuda"]
    compute_capability: tuple[int, int] = (0, 0)
    sms: int = 0
    memory_bytes: int = 0
    free_bytes: int = 0
    """Of the memory, just now."""
    l2_bytes: int = 0
    """On a CPU: of one core."""
    uuid: str = ""
    """Of a GPU: the same whatever CUDA_VISIBLE_DEVICES makes of its index."""
    driver: str = ""
    cores: int = 0
    """Logical cores that this process may run on."""
    flags: tuple[str, ...] = ()
    """Of the CPU's instruction sets, those that a kernel writer asks about."""
    l1_bytes: int = 0
    l3_bytes: int = 0
    """All last-level caches that our cores use, together."""

    @property
    def shared_memory(self) -> tuple[int, int]:
        """The most bytes of an SM, and of a block, that a kernel can have."""
        return SHARED_MEMORY.get(self.compute_capability, (0, 48 * 1024))

    @property
    def cuda_architecture(self) -> str | None:
        """For the compiler, such as `8.6`; from Hopper on with what only this chip has: `9.0a`."""
        if self.compute_capability == (0, 0):
            return None
        major, minor = self.compute_capability
        return f"{major}.{minor}{'a' if major >= 9 else ''}"


def describe(device: str) -> DeviceInfo:
    return describe_cpu() if device == "cpu" else describe_gpu(device_index(device))


def describe_cpu() -> DeviceInfo:
    text = read_text(Path("/proc/cpuinfo"))
    found = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", text, re.MULTILINE)
    present = set(found[1].split()) if found else set()
    caches, memory = _cpu_caches(), kilobyte_fields(Path("/proc/meminfo"))
    return DeviceInfo(
        name=_cpu_name(text),
        kind="cpu",
        memory_bytes=memory.get("MemTotal", 0),
        free_bytes=memory.get("MemAvailable", 0),
        cores=usable_cores(),
        flags=tuple(flag for flag in _FLAGS if flag in present),
        l1_bytes=max((size for level, size, _ in caches if level == 1), default=0),
        l2_bytes=max((size for level, size, _ in caches if level == 2), default=0),
        l3_bytes=sum(size for level, size, _ in caches if level == 3),
    )


def _cpu_name(cpuinfo: str) -> str:
    """The model; some hypervisors say no more than `AMD EPYC`, of which there are many."""
    name = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    numbers = re.findall(r"^(?:cpu family|model)\s*:\s*(\d+)$", cpuinfo, re.MULTILINE)[:2]
    if name is None:
        return platform.machine()
    if len(numbers) < 2 or re.search(r"\d", name[1]):
        return name[1].strip()
    return f"{name[1].strip()} (family {numbers[0]}, model {numbers[1]})"


def _cpu_caches() -> set[tuple[int, int, str]]:
    caches = set()
    for core in os.sched_getaffinity(0):
        for folder in (_SYSTEM_CPU / f"cpu{core}" / "cache").glob("index*"):
            size = re.fullmatch(r"(\d+)K", read_text(folder / "size"))
            if size and read_text(folder / "type") != "Instruction":
                level = int(read_text(folder / "level") or 0)
                caches.add((level, int(size[1]) * 1024, read_text(folder / "shared_cpu_list")))
    return caches


def list_gpus() -> list[DeviceInfo]:
    """The GPUs that CUDA would see, in its order; empty without a driver."""
    with nvml_library() as nvml:
        if nvml is None:
            return []
        return [_gpu(nvml, handle) for handle in nvml_handles(nvml)]


def describe_gpu(index: int = 0) -> DeviceInfo:
    """The GPU that CUDA calls `cuda:index`. Raises `UsageError` where there is none."""
    gpus = list_gpus()
    if not 0 <= index < len(gpus):
        there = f"this machine has {len(gpus)}" if gpus else "this machine has no NVIDIA GPU"
        raise UsageError(f"there is no cuda:{index}: {there}; use --device cpu")
    return gpus[index]


def _gpu(nvml: ModuleType, handle: object) -> DeviceInfo:
    name = nvml.nvmlDeviceGetName(handle)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    capability = (int(major), int(minor))
    product, memory = published(name), nvml.nvmlDeviceGetMemoryInfo(handle)
    sms = 0
    with contextlib.suppress(nvml.NVMLError):
        sms = int(nvml.nvmlDeviceGetNumGpuCores(handle)) // CORES_PER_SM.get(capability, 128)
    return DeviceInfo(
        name=name,
        kind="cuda",
        compute_capability=capability,
        sms=sms,
        memory_bytes=int(memory.total),
        free_bytes=int(memory.free),
        l2_bytes=product.l2_bytes if product else 0,
        uuid=nvml.nvmlDeviceGetUUID(handle),
        driver=nvml.nvmlSystemGetDriverVersion(),
    )


def cache_bytes(device: str) -> int:
    """The last-level cache: what has to be written over to push everything else out."""
    if device == "cpu":
        cpu = describe_cpu()
        return max(cpu.l3_bytes, cpu.l2_bytes * cpu.cores)
    import torch

    properties = torch.cuda.get_device_properties(device_index(device))
    return int(properties.L2_cache_size)


def hardware_lines(name: str) -> list[str]:
    """What a kernel writer should know of a device, one fact a line, for the prompt.

    `name` is `cpu` or `cuda:N`.
    """
    if name == "cpu":
        return _cpu_lines(describe_cpu())
    return _gpu_lines(describe_gpu(device_index(name)))


_ASKED_FOR = {"float32": "fp32", "tfloat32": "TF32", "float16": "fp16", "bfloat16": "bf16"}
"""Arithmetic that a task may ask for, by the names of `Published`."""


def _cpu_lines(info: DeviceInfo) -> list[str]:
    lines = [f"CPU: {info.name}, {info.cores} logical cores"]
    if info.flags:
        lines.append(f"instruction sets: {', '.join(info.flags)}")
    sizes = (("L1 data", info.l1_bytes), ("L2", info.l2_bytes), ("L3 in all", info.l3_bytes))
    caches = [f"{label} {_size(size)}" for label, size in sizes if size]
    if caches:
        lines.append(f"caches: {', '.join(caches)}")
    lines.append(f"memory: {info.memory_bytes / 2**30:.0f} GiB")
    return lines


def _gpu_lines(info: DeviceInfo) -> list[str]:
    major, minor = info.compute_capability
    threads = THREADS_PER_SM.get(info.compute_capability, 2048)
    per_sm, per_block = info.shared_memory
    lines = [
        f"GPU: {info.name}, compute capability {major}.{minor}"
        + (f", {info.sms} SMs" if info.sms else ""),
        f"an SM: {_size(per_sm)} of shared memory (a block: at most {_size(per_block)}, above "
        f"48 KiB on request), {REGISTERS_PER_SM} registers, {threads} threads",
        f"memory: {info.memory_bytes / 1e9:.0f} GB"
        + (f", L2 {_size(info.l2_bytes)}" if info.l2_bytes else ""),
    ]
    found = published(info.name)
    if found is not None:
        rates = ", ".join(
            f"{name} {found.tflops[kind]:g}"
            for kind, name in _ASKED_FOR.items()
            if kind in found.tflops
        )
        bandwidth = f"{found.bandwidth_bytes_s / 1e9:.0f} GB/s"
        lines.append(f"peak: {bandwidth}; dense TFLOP/s: {rates}")
    return lines


def _size(count: int) -> str:
    return f"{count / 2**20:g} MiB" if count >= 2**20 else f"{count / 2**10:g} KiB"


def see_only(device: str) -> str:
    """Hide all other GPUs from this process and those that it starts; what to call `device` then.

    So a kernel that says `cuda:0` is judged alike on every device, and none reaches a device on
    which another one is being timed.

    Must come before CUDA is first used here. Where there is one GPU, or `device` is `cpu`, nothing
    is changed.
    """
    gpus = list_gpus() if device != "cpu" else []
    if len(gpus) < 2:
        return device
    # By its UUID, since CUDA may count the devices in another order than the driver does.
    os.environ["CUDA_VISIBLE_DEVICES"] = gpus[device_index(device)].uuid
    return "cuda:0"


def see_none() -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
