"""Nsight Compute, played by a script that answers as it does; the exports are real ones."""

from __future__ import annotations

from pathlib import Path

from evaluator.collect.collected import Collected, Work

DATA = Path(__file__).parents[2] / "data" / "ncu"
WORK = Collected(work=Work(bytes=1e6, flops=0.0)).model_dump_json()
PROFILES = f"echo report > profile.ncu-rep; echo '{WORK}' > collected.json"
"""What it does when it profiles, in the folder of the request."""
_SCRIPT = """#!/bin/sh
echo "$@" >> {log}
case "$*" in
  *--query-metrics*) printf 'Device X (GH100)\\ngpu__time_duration  Counter  ns  time\\n'
                     printf 'gpu__dram_throughput  Throughput  %%  of peak\\n' ;;
  *"--page raw"*) cat {data}/gelu_h200_raw.csv ;;
  *"--page details"*) cat {data}/gelu_h200_details.csv ;;
  *) {profile} ;;
esac
"""


def install_ncu(place: Path, profile: str = PROFILES) -> Path:
    """Put the script at `place/bin/ncu`; what it is called with is appended to `place/log`."""
    script = place / "bin" / "ncu"
    script.parent.mkdir()
    script.write_text(_SCRIPT.format(log=place / "log", data=DATA, profile=profile))
    script.chmod(0o755)
    return script
