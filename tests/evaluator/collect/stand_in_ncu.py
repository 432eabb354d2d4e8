"""A program that answers as Nsight Compute does; what it exports are real exports of an H200."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from evaluator.collect.collected import Collected, Work
from evaluator.hardware.devices import DeviceInfo

DATA = Path(__file__).parents[2] / "data" / "ncu"
GPU = DeviceInfo("NVIDIA H200", "cuda", compute_capability=(9, 0), uuid="GPU-x")
WORK = Collected(work=Work(bytes=1e6, flops=0.0)).model_dump_json()
SCRIPT = """#!/bin/sh
case "$*" in
  *" -m evaluator.collect.target.run "*)
{profile}
exit ;;
esac
echo "$@" >> {log}
case "$*" in
  *--query-metrics*) printf 'Device X (GH100)\\ngpu__time_duration  Counter  ns  time\\n'
                     printf 'gpu__dram_throughput  Throughput  %%  of peak\\n' ;;
  *"--page raw"*) cat {data}/gelu_h200_raw.csv ;;
  *"--page source"*) cat {data}/column_sums_h200_source.csv ;;
esac
"""
TARGET = f"""
while [ "$1" != {sys.executable} ]; do shift; done
shift 4
{sys.executable} $(dirname $0)/target_without_gpu.py "$@" && cat told > profile.ncu-rep
"""
"""For `profile`: the true target, in a process below this one as under ncu. The report is what the
candidate has written to `told`."""
PROFILES = f"echo report > profile.ncu-rep; echo '{WORK}' > collected.json"
"""For `profile`: what a run of the target leaves, and no run."""


def stand_in_ncu(folder: Path, log: Path, profile: str = TARGET) -> Path:
    """`ncu` in `folder`, which does `profile` (shell) where it is to watch a program.

    What it was asked about metrics and reports is in `log`; where it watches, walls keep it in.
    """
    folder.mkdir(exist_ok=True)
    # Beside it: of our tests nothing is to be seen from behind the walls.
    shutil.copy(Path(__file__).with_name("target_without_gpu.py"), folder)
    script = folder / "ncu"
    script.write_text(SCRIPT.format(log=log, data=DATA, profile=profile))
    script.chmod(0o755)
    return script


def stand_in_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """`GPU` is there, for each process that asks what it is."""
    monkeypatch.setattr("evaluator.hardware.devices.list_gpus", lambda: [GPU])
