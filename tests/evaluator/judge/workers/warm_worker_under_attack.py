"""A candidate that knows its successor's worker does to it what it can; JSON tells what came of it.

`python warm_worker_under_attack.py`. It reports whether there is such a worker, what
reached it, whether the successor gets that very worker, and the state of its process.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import astuple
from pathlib import Path

import torch

from evaluator.backend_flags import BackendFlags
from evaluator.errors import UnusableReferenceError
from evaluator.judge.rejection import Rejection
from evaluator.judge.workers.module_runner import ModuleRunner
from evaluator.judge.workers.process import WorkerLimits
from evaluator.judge.workers.zygote import Zygote
from evaluator.worker.orders import LoadOrder

LIMITS = WorkerLimits(memory_bytes=16 * 2**30, cpu_seconds=60)
ATTACK = """
import ctypes, os, resource, signal
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)
successor, scratch = {pid}, Path({scratch!r})
reached = []

def attempt(name, action):
    try:
        if action() != -1:
            reached.append(name)
    except Exception:
        pass

def read(target):
    local, remote = (ctypes.c_ulong * 2)(), (ctypes.c_ulong * 2)()
    return libc.process_vm_readv(target, local, 1, remote, 1, 0)

def attack(target):
    attempt("SIGCONT", lambda: os.kill(target, signal.SIGCONT))
    attempt("SIGSTOP", lambda: os.kill(target, signal.SIGSTOP))
    attempt("group", lambda: os.killpg(target, signal.SIGSTOP))
    attempt("affinity", lambda: os.sched_setaffinity(target, {{0}}))
    attempt("scheduler", lambda: os.sched_setscheduler(target, os.SCHED_IDLE, os.sched_param(0)))
    attempt("priority", lambda: os.setpriority(os.PRIO_PROCESS, target, 19))
    attempt("limit", lambda: resource.prlimit(target, resource.RLIMIT_CORE, (0, 0)))
    attempt("ptrace", lambda: libc.ptrace(16, target, 0, 0))
    attempt("process_vm_readv", lambda: read(target))
    for name in ("mem", "maps", "environ", "fd/0", "root/etc/hostname"):
        # Of somebody else some can be opened, and there is nothing in them.
        attempt(name, lambda: open(f"/proc/{{target}}/{{name}}", "rb").read(1) or -1)
    attempt("SIGKILL", lambda: os.kill(target, signal.SIGKILL))

mine = os.getpid()
seen = {{int(e.name) for e in Path("/proc").iterdir() if e.name.isdecimal()}} - {{mine, 1}}
# In a namespace of its own the number is nobody's, or another one's of the candidate's own.
for target in sorted(seen | {{successor}}):
    attack(target)
attempt("scratch", lambda: os.listdir(scratch))
attempt("write", lambda: (scratch / "candidate.py").write_text(""))
try:
    os.kill(-1, signal.SIGSTOP)
except OSError:
    pass
raise ValueError(",".join(reached) or "nothing")
"""
HARMLESS = "import torch\nclass ModelNew(torch.nn.Module): pass"


def load(runner: ModuleRunner, source: str) -> str:
    """What became of an import, as text."""
    try:
        order = LoadOrder(
            source,
            "ModelNew",
            threads=1,
            dtype="float32",
            flags=astuple(BackendFlags.of_pytorch()),
            text="lines",
        )
        runner.load(order, no_build)
        runner.loaded(30.0)
    except Rejection as rejection:
        return rejection.message
    finally:
        runner.close()
    return ""


def no_build(_: object) -> None:
    raise UnusableReferenceError("nothing is built here")


def main() -> dict[str, object]:
    zygote = Zygote()
    try:
        zygote.pool.prepare(LIMITS)
        zygote.pool.settle()
        if zygote.pool.first is None:
            return {"warm worker": False}
        waiting = zygote.pool.first.worker
        assert waiting is not None
        attacker = zygote._fork_fresh(LIMITS, confine=True)
        source = ATTACK.format(pid=waiting.pid, scratch=str(waiting.scratch))
        said = load(ModuleRunner(attacker, torch.device("cpu"), 30.0), source).rpartition(" ")[2]
        state = Path(f"/proc/{waiting.pid}/stat").read_text().rpartition(")")[2].split()[0]
        taken = zygote.fork(LIMITS)
        same = (
            taken is waiting
            and load(ModuleRunner(taken, torch.device("cpu"), 30.0), HARMLESS) == ""
        )
        reached = [] if said == "nothing" else said.split(",")
        return {"warm worker": True, "reached": reached, "same": same, "state": state}
    finally:
        zygote.close()


if __name__ == "__main__":
    # Of another user who can't write where this one's folder for temporary files lies.
    tempfile.tempdir = "/tmp"
    print(json.dumps(main()))
