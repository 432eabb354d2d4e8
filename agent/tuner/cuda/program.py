"""Writes fused kernels as CUDA for `load_inline`.

The schedule's knobs (`schedule.py`) decide blocks, vectors, staging and the rest; a file for each
nest (`map.py`, `rows.py`, `total.py`) writes its loops.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

from agent.tuner.cuda import device as cuda_device
from agent.tuner.cuda.map import CudaMap
from agent.tuner.cuda.maths import FLAGS, prelude
from agent.tuner.cuda.rows import CudaRows
from agent.tuner.cuda.total import CudaTotal
from agent.tuner.kernel_text import declaration
from agent.tuner.planning.expression import FUNCTIONS
from agent.tuner.planning.fused import Fused, Nest
from agent.tuner.planning.schedule import Schedule

WRITERS: Mapping[Nest, type[CudaMap | CudaRows | CudaTotal]] = {
    Nest.MAP: CudaMap,
    Nest.ROWS: CudaRows,
    Nest.TOTAL: CudaTotal,
}


def source(kernels: Sequence[Fused], schedule: Schedule) -> str:
    """All kernels as one CUDA file."""
    body = "\n".join(WRITERS[k.nest](k, schedule).text() for k in kernels)
    used = set(re.findall(r"\b(\w+_)\(", body)) & {f"{op}_" for op in FUNCTIONS}
    online = "team_online" in body
    parts = [
        cuda_device.INCLUDES,
        cuda_device.PACKS,
        prelude(schedule["maths"], sorted(used | {"exp_"} if online else used)),
        cuda_device.REDUCTIONS if any(k.reductions for k in kernels) else "",
        cuda_device.ONLINE if online else "",
        body,
    ]
    return "\n".join(p for p in parts if p)


def load(kernels: Sequence[Fused], schedule: Schedule) -> str:
    """The Python text that builds the kernels with `load_inline` and calls the module `kernels`."""
    text = source(kernels, schedule)
    flags = ["-O3", *FLAGS.get(schedule["maths"], ())]
    declared = "\n".join(f"{declaration(k)};" for k in kernels)
    digest = hashlib.sha256(f"{text}{flags}".encode()).hexdigest()[:12]
    names = ", ".join(f'"{k.name}"' for k in kernels)
    listed = ", ".join(f'"{f}"' for f in flags)
    return f'''\
from torch.utils.cpp_extension import load_inline

DECLARATIONS = """
#include <torch/extension.h>
{declared}
"""

SOURCE = r"""
{text}"""

kernels = load_inline(
    name="tuned_{digest}",
    cpp_sources=[DECLARATIONS],
    cuda_sources=[SOURCE],
    functions=[{names}],
    extra_cflags=["-O2"],
    extra_cuda_cflags=[{listed}],
)'''
