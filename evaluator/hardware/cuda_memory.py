"""Device memory that one process creates and others map, by file descriptor, through the driver.

The judge creates the memory with `cuMemCreate` and exports it; a worker maps it, read-only for
inputs. A write through a read-only mapping faults in the worker's context alone. Neither torch nor
a CUDA runtime is needed here, only libcuda. Memory for VMM lives outside torch's allocator.
Source of the calls: CUDA Driver API, Virtual Memory Management.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from evaluator.errors import DeviceError

if TYPE_CHECKING:
    import torch

_PINNED = 1  # CU_MEM_ALLOCATION_TYPE_PINNED
_POSIX_FD = 1  # CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
_DEVICE = 1  # CU_MEM_LOCATION_TYPE_DEVICE
_READ, _READ_WRITE = 1, 3  # CU_MEM_ACCESS_FLAGS_PROT_*
_WAIT_EQUAL = 1  # CU_STREAM_WAIT_VALUE_EQ
_WRITE = 0  # CU_STREAM_WRITE_VALUE_DEFAULT: all that came before is visible by then
_MAX_PERSISTING_L2 = 108  # CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE
_NOTHING_BYTES = 2**21
"""Addresses behind a mapping that are kept free: what a kernel reads or writes there is illegal."""


class _Location(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class _AllocationFlags(ctypes.Structure):
    _fields_ = (
        ("compression", ctypes.c_ubyte),
        ("rdma", ctypes.c_ubyte),
        ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 4),
    )


class _Properties(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("win32", ctypes.c_void_p),
        ("flags", _AllocationFlags),
    )


class _Access(ctypes.Structure):
    _fields_ = (("location", _Location), ("flags", ctypes.c_int))


_ADDRESS = _HANDLE = _FLAGS = ctypes.c_uint64
_SIZE, _OUT, _STREAM = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p
_ARGUMENTS: dict[str, tuple[type[ctypes._SimpleCData[Any]], ...]] = {
    "cuMemGetAllocationGranularity": (_OUT, ctypes.c_void_p, ctypes.c_int),
    "cuMemCreate": (_OUT, _SIZE, ctypes.c_void_p, _FLAGS),
    "cuMemExportToShareableHandle": (_OUT, _HANDLE, ctypes.c_int, _FLAGS),
    "cuMemImportFromShareableHandle": (_OUT, ctypes.c_void_p, ctypes.c_int),
    "cuMemAddressReserve": (_OUT, _SIZE, _SIZE, _ADDRESS, _FLAGS),
    "cuMemMap": (_ADDRESS, _SIZE, _SIZE, _HANDLE, _FLAGS),
    "cuMemSetAccess": (_ADDRESS, _SIZE, ctypes.c_void_p, _SIZE),
    "cuMemUnmap": (_ADDRESS, _SIZE),
    "cuMemAddressFree": (_ADDRESS, _SIZE),
    "cuMemRelease": (_HANDLE,),
    "cuDeviceGet": (_OUT, ctypes.c_int),
    "cuDeviceGetAttribute": (_OUT, ctypes.c_int, ctypes.c_int),
    "cuMemsetD32Async": (_ADDRESS, ctypes.c_uint, _SIZE, _STREAM),
    "cuStreamWaitValue32_v2": (_STREAM, _ADDRESS, ctypes.c_uint32, ctypes.c_uint),
    "cuStreamWriteValue32_v2": (_STREAM, _ADDRESS, ctypes.c_uint32, ctypes.c_uint),
}
"""Types of the arguments; a call of any other function brings its arguments as ctypes."""


@cache
def _driver() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise DeviceError("libcuda.so.1 cannot be loaded: no NVIDIA driver here") from None


@cache
def _function(name: str) -> Callable[..., int]:
    function = getattr(_driver(), name)
    function.argtypes = _ARGUMENTS.get(name)
    return cast(Callable[..., int], function)


def driver_call(name: str, *arguments: object) -> None:
    """Call a function of the driver's library; raises `DeviceError` with what the driver says."""
    code = _function(name)(*arguments)
    if code:
        text = ctypes.c_char_p()
        _driver().cuGetErrorString(code, ctypes.byref(text))
        raise DeviceError(f"{name}: {(text.value or b'unknown').decode()} ({code})")


@dataclass
class DeviceMapping:
    address: int
    size: int
    handle: int

    def as_bytes(self, device: str) -> torch.Tensor:
        """A uint8 torch tensor over the whole mapping; shape [size], no copy."""
        import torch

        return torch.as_tensor(_Interface(self.address, self.size), device=device)

    def unmap(self) -> None:
        """Take the mapping away; tensors over it must be gone."""
        driver_call("cuMemUnmap", self.address, self.size)
        driver_call("cuMemAddressFree", self.address, self.size + _NOTHING_BYTES)
        driver_call("cuMemRelease", self.handle)


class _Interface:
    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "strides": None,
            "version": 3,
        }


def create(ordinal: int, size: int) -> tuple[DeviceMapping, int]:
    """Memory of at least `size` bytes on a device, mapped here for writing, and its descriptor.

    The calling thread must have the device's primary context current (torch initialised).
    Raises `DeviceError`.
    """
    properties = _Properties(
        type=_PINNED, handle_types=_POSIX_FD, location=_Location(type=_DEVICE, id=ordinal)
    )
    granularity = ctypes.c_size_t()
    driver_call(
        "cuMemGetAllocationGranularity", ctypes.byref(granularity), ctypes.byref(properties), 0
    )
    step = granularity.value
    size = max(step, (size + step - 1) // step * step)
    handle, fd = ctypes.c_uint64(), ctypes.c_int()
    driver_call("cuMemCreate", ctypes.byref(handle), size, ctypes.byref(properties), 0)
    driver_call("cuMemExportToShareableHandle", ctypes.byref(fd), handle, _POSIX_FD, 0)
    return _map(ordinal, handle, size, _READ_WRITE), fd.value


def import_memory(ordinal: int, fd: int, size: int, *, writable: bool) -> DeviceMapping:
    """Map memory that another process exported; `size` is what `create` rounded to."""
    handle = ctypes.c_uint64()
    driver_call("cuMemImportFromShareableHandle", ctypes.byref(handle), fd, _POSIX_FD)
    return _map(ordinal, handle, size, _READ_WRITE if writable else _READ)


def _map(ordinal: int, handle: ctypes.c_uint64, size: int, flags: int) -> DeviceMapping:
    address = ctypes.c_uint64()
    driver_call("cuMemAddressReserve", ctypes.byref(address), size + _NOTHING_BYTES, 0, 0, 0)
    driver_call("cuMemMap", address, size, 0, handle, 0)
    access = _Access(location=_Location(type=_DEVICE, id=ordinal), flags=flags)
    driver_call("cuMemSetAccess", address, size, ctypes.byref(access), 1)
    return DeviceMapping(address.value, size, handle.value)


def reset_persisting_l2(ordinal: int) -> bool:
    """Make all lines that some kernel keeps in the L2 cache ordinary ones, which a flush evicts.

    False where the device has no such lines or its driver declines; the record then says so. The
    calling thread must have the device's primary context current.
    """
    device, most = ctypes.c_int(), ctypes.c_int()
    driver_call("cuDeviceGet", ctypes.byref(device), ordinal)
    driver_call("cuDeviceGetAttribute", ctypes.byref(most), _MAX_PERSISTING_L2, device)
    return most.value > 0 and _driver().cuCtxResetPersistingL2Cache() == 0


def hold_stream(stream: int, address: int, value: int) -> None:
    """What is enqueued on a stream from now on waits until the 32 bits at `address` are `value`.

    The device's own scheduler waits; no multiprocessor is taken. `address`: of this process, to
    memory that it maps. Source: CUDA Driver API, Stream Memory Operations. Raises `DeviceError`.
    """
    driver_call("cuStreamWaitValue32_v2", stream, address, value, _WAIT_EQUAL)


def signal(stream: int, address: int, value: int) -> None:
    """Enqueue that the 32 bits at `address` become `value` once all before them on the stream is
    done. Source: CUDA Driver API, Stream Memory Operations. Raises `DeviceError`."""
    driver_call("cuStreamWriteValue32_v2", stream, address, value, _WRITE)
