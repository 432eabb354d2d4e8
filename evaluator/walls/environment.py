"""The environment of a process that will run a candidate's code: nothing that could hold a key."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ENVIRONMENT = (
    "PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "OMP_NUM_THREADS",
    "VIRTUAL_ENV",
)
"""All that a worker inherits of the environment."""


def python_path() -> str:
    """PYTHONPATH of our processes: our packages, then what was there already."""
    ours = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(filter(None, [ours, os.environ.get("PYTHONPATH", "")]))


def python_module(module: str, *arguments: str) -> list[str]:
    """The command of a process of ours. With PYTHONPATH as `python_path` has it, no package of the
    same name in the present folder comes first."""
    return [sys.executable, "-P", "-m", module, *arguments]


def clean_environment(scratch: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    return kept | {
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        # Its uid may have no name: who asks for one finds it here.
        "USER": "nobody",
        "LOGNAME": "nobody",
        "TRITON_CACHE_DIR": str(scratch / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor"),
        # What a worker starts reaches no GPU, where inductor's own compiling processes need one.
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TORCH_EXTENSIONS_DIR": str(scratch / "extensions"),
        # Freed memory stays in the heap. Otherwise it depends on the heap's luck whether a large
        # temporary is new from the kernel at every call: the same eager call was seen to take 1.9
        # or 13.9 ms, most of it page faults.
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(2**40),
        "MALLOC_TOP_PAD_": str(2**26),
        # On an H200 this lets 4,094 launches wait behind a held stream instead of 1,022.
        # The LSTMs and GRUs of KernelBench's level 3 make more than 1,022.
        "CUDA_SCALE_LAUNCH_QUEUES": "4x",
        # There is no network: a request to the Hugging Face hub fails at once.
        "HF_HUB_OFFLINE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": python_path(),
        "PYTHONUNBUFFERED": "1",
    }
