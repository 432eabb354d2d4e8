"""Unwritten memory of a GPU holds a poison, so that no result is right by luck.

Fresh memory and shared memory are mostly zero, or what an earlier call left there: a kernel that
forgets to write them is right until it runs elsewhere.
"""

from __future__ import annotations

import ctypes
import struct
from functools import cache

import torch

from evaluator.hardware.cuda_memory import driver_call
from evaluator.worker.steps import FILL_VALUE

POISONS = (0xFFFFFFFF, 0x7149F2CA, 0xF149F2CA)
"""32-bit words: a NaN of every dtype, 1e30 and -1e30; a maximum would hide a NaN."""
FILL_WORD = int.from_bytes(struct.pack("<f", FILL_VALUE), "little")
"""The same for the step that fills free memory."""
_MULTIPROCESSORS = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
_MOST_SHARED_BYTES = 97  # CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
_DYNAMIC_BYTES = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_THREADS = 1024
_NO_POOL = (0, 0)
_PTX = b"""
.version 6.4
.target sm_50
.address_size 64
.extern .shared .align 4 .b32 memory[];
.visible .entry poison(.param .u32 words, .param .u32 value)
{
    .reg .pred %outside;
    .reg .b32 %word, %end, %step, %value, %base, %address;
    ld.param.u32 %end, [words];
    ld.param.u32 %value, [value];
    mov.u32 %word, %tid.x;
    mov.u32 %step, %ntid.x;
    mov.u32 %base, memory;
NEXT:
    setp.ge.u32 %outside, %word, %end;
    @%outside bra END;
    shl.b32 %address, %word, 2;
    add.u32 %address, %address, %base;
    st.shared.u32 [%address], %value;
    add.u32 %word, %word, %step;
    bra NEXT;
END:
    ret;
}
"""


def poison_free_memory(word: int) -> None:
    """Fill what PyTorch's allocator holds for later tensors; waits until that is done.

    The memory that belongs to CUDA graphs is left as it is: a graph may keep something there.
    """
    stream = torch.cuda.current_stream().cuda_stream
    for segment in torch.cuda.memory_snapshot():
        if segment["segment_pool_id"] != _NO_POOL:
            continue
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "inactive":
                driver_call("cuMemsetD32Async", address, word, block["size"] // 4, stream)
            address += block["size"]
    torch.cuda.synchronize()


def poison_shared_memory(word: int) -> None:
    """Enqueue, on the current stream, that the shared memory of each multiprocessor is filled."""
    kernel, multiprocessors, size = shared_memory_kernel(torch.cuda.current_device())
    values = (ctypes.c_uint(size // 4), ctypes.c_uint(word))
    parameters = (ctypes.c_void_p * len(values))(
        *(ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values)
    )
    # A block takes all that a multiprocessor has, so that each gets one.
    shape = (multiprocessors, 1, 1, _THREADS, 1, 1)
    driver_call(
        "cuLaunchKernel",
        kernel,
        *(ctypes.c_uint(number) for number in (*shape, size)),
        ctypes.c_void_p(torch.cuda.current_stream().cuda_stream),
        parameters,
        None,
    )


@cache
def shared_memory_kernel(ordinal: int) -> tuple[ctypes.c_void_p, int, int]:
    """The kernel in the current context, the number of multiprocessors, and the bytes of shared
    memory that a block can have. Raises `DeviceError`."""
    module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    driver_call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(_PTX))
    driver_call("cuModuleGetFunction", ctypes.byref(kernel), module, ctypes.c_char_p(b"poison"))
    size = _attribute(_MOST_SHARED_BYTES, ordinal)
    driver_call("cuFuncSetAttribute", kernel, ctypes.c_int(_DYNAMIC_BYTES), ctypes.c_int(size))
    return kernel, _attribute(_MULTIPROCESSORS, ordinal), size


def _attribute(which: int, ordinal: int) -> int:
    device, value = ctypes.c_int(), ctypes.c_int()
    driver_call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(ordinal))
    driver_call("cuDeviceGetAttribute", ctypes.byref(value), ctypes.c_int(which), device)
    return value.value
