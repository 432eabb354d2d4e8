"""`evaluator.collect.target.run` as `ncu` starts it, where CUDA's profiler switch has no GPU."""

from __future__ import annotations

import runpy
from contextlib import nullcontext
from types import SimpleNamespace

import torch

if __name__ == "__main__":
    torch.cuda.synchronize = lambda *device: None
    torch.cuda.nvtx.range = nullcontext
    switch = SimpleNamespace(cudaProfilerStart=lambda: 0, cudaProfilerStop=lambda: 0)
    torch.cuda.cudart = lambda: switch
    runpy.run_module("evaluator.collect.target.run", run_name="__main__", alter_sys=True)
