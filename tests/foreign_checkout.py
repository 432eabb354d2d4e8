"""A small checkout in the format of KernelBench-X, with tasks of our own."""

from __future__ import annotations

import json
from pathlib import Path

LINE = "#" * 146
SHIFTED = '''import torch

def shifted(x, by=1.0, *, scale=None):
    """Moves numbers."""
    y = x + by
    return y if scale is None else y * scale
'''
SHIFTED_TEST = """
import os, sys
sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), "../../utils")))
from data_utils import rand_tensor

def cases():
    found = {}
    found["listed"] = shifted(torch.tensor([1.5, -2.0], device="cuda"))
    found["triangular"] = shifted(torch.tril(torch.randn(5, 5, device="cuda")), by=2.0)
    s = torch.randn(4, 4, device="cuda", dtype=torch.float64)
    s = s @ s.T + torch.eye(4, device="cuda", dtype=torch.float64)
    found["definite"] = shifted(s, scale=0.5)
    found["half"] = shifted(rand_tensor((3, 7), dtype=torch.float16, mode="outlier"))
    for _ in range(3):
        found["again"] = shifted(torch.rand(6).sort().values.cuda(), 3.0)
    written = torch.zeros(4)
    written[1:3].fill_(2.0)
    found["written"] = shifted(written)
    return found

test_results = cases()
"""
PICKED = "import torch\n\ndef picked(x):\n    return x[x > 0.5] * 2\n"
"""How many numbers it returns depends on their values."""
SWEEP = """
from kernelbenchx.{category}.{name} import {name}
from performance_utils import Performance_Metrics
import torch
import triton
import triton.language as tl

class performance_metrics(Performance_Metrics):
    def __init__(self, dtype=None, is_backward=False, **kwargs):
        super().__init__("{name}", dtype=dtype, is_backward=is_backward, **kwargs)

    def get_input_tensors(self):
        sizes = [n for n in {sizes} if 2**n <= 2 * torch.cuda.mem_get_info()[0]]
        self.input_tensors = [torch.rand(2**n) for n in sizes]

    def to_cuda(self, x):
        return x.cuda()

    def call_op(self, x):
        return {name}(x)

    def get_gbps(self, x, runtime):
        return 2 * x.numel() * x.element_size() / (runtime / 1000) / 1e9

    def get_tflops(self, x, runtime):
        return x.numel() / (runtime / 1000) / 1e12
"""
FORMS = {
    "never_ends": "import time\nwhile True:\n    time.sleep(1)\n",
    "large": "large(torch.empty(60 * 2**30, dtype=torch.int8, device='cuda').fill_(1))\n",
    "leaves": (
        "import os\nopen({outside!r}, 'w').write('was here')\n"
        "leaves(torch.rand(3, device='cuda'))\n"
    ),
    "forges": (
        "import json, os\n"
        "call = {'args': [1.0], 'tensors': [{'shape': [3], 'dtype': '__class__'}]}\n"
        "record = {'test': [call], 'sweep': [call], 'ended': ''}\n"
        "open('record.json', 'w').write(json.dumps(record))\nos._exit(0)\n"
    ),
    "optimiser": "optimiser(torch.rand(3, device='cuda', requires_grad=True))\n",
}


def write_task(
    folder: Path,
    name: str,
    reference: str,
    test: str,
    sizes: tuple[int, ...] = (8, 10, 12, 32, 36),
    category: str = "Math",
) -> None:
    task = folder / "data" / "kernelbenchx" / category / f"{name}.py"
    task.parent.mkdir(parents=True, exist_ok=True)
    task.write_text(f"{reference}\n{LINE}\n{test}")
    sweep = folder / "metrics" / "golden_metrics" / f"{name}_perf.py"
    sweep.parent.mkdir(parents=True, exist_ok=True)
    sweep.write_text(SWEEP.format(category=category, name=name, sizes=sizes))


def write_checkout(folder: Path) -> Path:
    write_task(folder, "shifted", SHIFTED, SHIFTED_TEST)
    for name in ("large", "leaves", "forges", "optimiser"):
        result = "torch.optim.SGD([x], lr=0.1)" if name == "optimiser" else "x + 1"
        reference = f"import torch\n\ndef {name}(x):\n    return {result}\n"
        test = FORMS[name].replace("{outside!r}", repr(str(folder / "outside")))
        write_task(folder, name, reference, test)
    write_task(folder, "picked", PICKED, "picked(torch.rand(9, device='cuda'))\n", (8, 9))
    bare = folder / "data" / "kernelbenchx" / "Math" / "bare.py"
    bare.write_text("def bare(x):\n    return x\n")
    (folder / "metrics" / "golden_metrics" / "bare_perf.py").write_text("")
    entry = {
        "file": "Math/shifted.py",
        "func_inputs": "shifted(x, by=1.0, *, scale=None) -> Tensor",
        "description": "Moves numbers by an amount.\\n$\\nabla y = 1$",
        "example": "shifted(torch.zeros(2))\\ntensor([1., 1.])",
    }
    rough = {"file": "Math/picked.py", "precision_thresholds": {"rmse": 0.1, "l1_relative": 0.1}}
    (folder / "data" / "kernelbenchx_v1.json").write_text(json.dumps([entry, rough]))
    return folder
