"""Each wall that a worker claims to stand behind is run against from a candidate."""

from __future__ import annotations

import ast
import os
import platform
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evaluator.evaluation import Status
from evaluator.walls.environment import clean_environment
from evaluator.walls.seccomp import NUMBERS, WAKING
from tests.evaluator.made_requests import HONEST, forward
from tests.evaluator.processes import command_line
from tests.evaluator.walls.test_mounts import printed_by

PROBES = {
    "own_uid": "os.getuid() < 1000 or os.access('/proc/1/environ', os.R_OK)",
    "homes_hidden": "any(os.path.exists(path) for path in ('/root/.bashrc', '/root/.cache'))",
    "network_namespace": "names_of_network_devices() - {'lo'}",
    "pid_namespace": "os.getppid() != 0",
    "own_proc": "processes() - {1, os.getpid()}",
    "read_only": "error_of_chmod(os.__file__) != errno.EROFS",
    "own_tmp": "os.listdir('/dev/shm') or can_write(OUTSIDE)",
    "no_capabilities": "'CapEff:\\t0000000000000000' not in status()",
    "no_new_privs": "'NoNewPrivs:\\t1' not in status()",
    "rlimits": "resource.getrlimit(resource.RLIMIT_CORE)[0] != 0",
    "memory_limit": "resource.getrlimit(resource.RLIMIT_AS)[0] > 2**35",
    "clean_environment": "any('KEY' in name for name in os.environ)",
    "landlock": "can_read(OUTSIDE + '/secret') or can_write(OUTSIDE) or can_write('/dev')",
    "seccomp": "any(allowed(number) for number in (46, 307, 101, 310, 272, 321, 298, 425))",
}
HEAD = """
import ctypes, errno, os, resource
def error_of_chmod(path):
    try:
        os.chmod(path, 0o644)
    except OSError as error:
        return error.errno
OUTSIDE = {outside!r}
def names_of_network_devices():
    lines = open('/proc/net/dev').read().splitlines()[2:]
    return {{line.split(':')[0].strip() for line in lines}}
def processes():
    return {{int(name) for name in os.listdir('/proc') if name.isdigit()}}
def status():
    return open('/proc/self/status').read()
def can_read(path):
    try:
        return bool(open(path).read())
    except OSError:
        return False
def can_write(folder):
    try:
        open(folder + '/written', 'w').close()
    except OSError:
        return False
    return True
def allowed(number):
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(number, -1, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != 1
"""

FAULTS = """
import resource, torch
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
x = torch.ones(2048, 2000)
def call():
    squares = x.pow(2)
    return x * torch.rsqrt(squares.mean(-1, keepdim=True)) * x[0]
for _ in range(20): call()
before = faults()
for _ in range(20): call()
print(faults() - before)
"""


@pytest.mark.parametrize("_", range(4))
def test_large_temporaries_come_from_warm_memory(tmp_path, _):
    """Where they don't, a call faults 12,000 times and takes 7x as long. The heap's luck may cost
    a few hundred."""
    ran = subprocess.run(
        [sys.executable, "-c", FAULTS],
        env=clean_environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(ran.stdout) / 20 < 1200


ASKED_BEFORE = """
import sys, tempfile
from pathlib import Path
from evaluator.walls.layers import confine
tempfile.gettempdir()
confine(Path(sys.argv[1]), memory_bytes=None, cpu_seconds=60)
print(tempfile.mkdtemp())
"""


def test_the_temporary_folder_is_the_workers_own_though_an_import_asked_before(tmp_path):
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    assert Path(printed_by(ASKED_BEFORE, scratch).strip()).parent == scratch


def test_the_layers_that_are_reported_hold(evaluate, monkeypatch, tmp_path):
    monkeypatch.setenv("SOME_API_KEY", "secret")
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    tmp_path.chmod(0o777)
    (tmp_path / "secret").write_text("secret")
    holes = "".join(f"'{layer}': bool({probe}), " for layer, probe in PROBES.items())
    evaluation = evaluate(
        forward(f"raise ValueError({{{holes}}})", HEAD.format(outside=str(tmp_path)))
    )
    found = ast.literal_eval(re.search(r"\{.+\}", evaluation.message)[0])
    assert not {layer for layer in evaluation.isolation if found.get(layer)}
    assert set(PROBES) <= set(evaluation.isolation) or os.geteuid() != 0
    assert not (tmp_path / "written").exists() or "landlock" not in evaluation.isolation


@pytest.mark.thorough
def test_pytorchs_own_address_space_does_not_count(evaluate):
    """With CUDA's libraries it is more than many a limit."""
    # Each thread has some of its own.
    small = {"memory_limit_bytes": 2**29, "timing_seconds": 0.05, "threads": 1}
    assert evaluate(HONEST, **small).status is Status.CORRECT
    body = (
        "had = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "assert had > 2**29, had\n"
        "kept = []\n"
        "for _ in range(8):\n"
        "    kept.append(mmap.mmap(-1, 2**26, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))\n"
    )
    evaluation = evaluate(forward(body, "import mmap, resource"), **small)
    assert evaluation.status is Status.RUNTIME_ERROR
    assert "Cannot allocate memory" in evaluation.message, evaluation.message


@pytest.mark.parametrize("leave", ["", "start_new_session=True"])
def test_no_process_is_left_behind(evaluate, leave):
    body = (
        f"import subprocess\nsubprocess.Popen(['sleep', '9731'], {leave})\nraise ValueError('away')"
    )
    assert "away" in evaluate(forward(body)).message
    assert not any("9731" in line for line in _command_lines())


def test_a_session_of_its_own_is_granted_in_words_only(evaluate):
    body = "os.setsid()\nos.setpgid(0, 0)\nraise ValueError(os.getpgid(0) == os.getpid())"
    assert "True" in evaluate(forward(body, "import os")).message
    # A child asks for it too, and stays where its worker is.
    child = (
        "pid = os.fork()\nif pid == 0:\n    os.setsid()\n"
        "    os._exit(os.getpgid(0) == os.getpid())\n"
        "raise ValueError(os.waitpid(pid, 0)[1])"
    )
    assert "ValueError: 0" in evaluate(forward(child, "import os")).message


def test_a_worker_cannot_have_itself_woken_while_it_is_stopped(evaluate):
    """SIGCONT from a timer, a message queue or a descriptor would end the judge's SIGSTOP."""
    head = (
        "import ctypes, fcntl, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "def refused(number, first):\n"
        "    return libc.syscall(number, first, 18, 0) == -1 and ctypes.get_errno() == 1\n"
        "def set_signal():\n"
        "    try:\n        fcntl.fcntl(os.pipe()[0], fcntl.F_SETSIG, 18)\n"
        "    except PermissionError:\n        return True\n"
    )
    table = NUMBERS[platform.machine()]
    numbers = [(table[name], 0) for name in WAKING]
    # The signal that a parent's end sends, and a child's.
    numbers += [(table["prctl"], 1), (table["clone"], int(signal.SIGCONT))]
    # And who gets orphans is not theirs to say, nor to be found among the zygote's own children.
    numbers += [(table["prctl"], 36), (table["clone"], 0x8000 | int(signal.SIGCHLD))]
    body = f"raise ValueError([refused(*n) for n in {numbers}] + [set_signal()])"
    assert "[True, True, True, True, True, True, True]" in evaluate(forward(body, head)).message


def test_honest_programs_run_behind_the_walls(evaluate):
    """Subprocesses, pools, threads with names (CUDA's driver gives some), temporary files."""
    head = (
        "import concurrent.futures, multiprocessing.shared_memory, os, subprocess, tempfile\n"
        "import threading\n"
        "def child():\n"
        "    run = subprocess.run(['sh', '-c', 'echo $((6 * 7))'], capture_output=True,\n"
        "                         start_new_session=True, check=True)\n"
        "    return int(run.stdout)\n"
        "assert child() == 42\n"
        "with concurrent.futures.ThreadPoolExecutor(16) as pool:\n"
        "    assert sum(pool.map(int, range(100))) == 4950\n"
        "with tempfile.NamedTemporaryFile() as file:\n"
        "    file.write(b'x' * 1000000)\n"
        "open('/tmp/hard_coded', 'w').close()\n"
        "shared = multiprocessing.shared_memory.SharedMemory(create=True, size=4096)\n"
        "shared.unlink()\n"
        "left, right = multiprocessing.Pipe()\n"
        "ended = threading.Event()\n"
        "thread = threading.Thread(target=ended.wait)\n"
        "thread.start()\n"
        "with open(f'/proc/self/task/{thread.native_id}/comm', 'w') as name:\n"
        "    name.write('named')\n"
        "ended.set()\n"
        "os.makedirs(os.path.expanduser('~/.cache/mine'))\n"
    )
    evaluation = evaluate(head + HONEST)
    assert evaluation.status == "correct", evaluation.message + evaluation.detail


def _command_lines() -> list[str]:
    # A process that was killed takes a moment to go.
    time.sleep(0.1)
    return [command_line(int(process.name)) for process in Path("/proc").glob("[0-9]*")]


def test_a_shared_segment_ends_with_its_candidate(evaluate):
    """System V segments outlive their processes, and would use up the memory of the machine."""
    head = "import ctypes\nlibc = ctypes.CDLL(None)"
    leaves = evaluate(forward("raise ValueError(f'left {libc.shmget(4711, 4096, 0o1666)}')", head))
    assert "left " in leaves.message
    assert "left -1" not in leaves.message
    finds = evaluate(forward("raise ValueError(f'found {libc.shmget(4711, 4096, 0)}')", head))
    if "pid_namespace" in finds.isolation:
        assert "found -1" in finds.message
    else:
        assert os.geteuid() != 0, "pid_namespace is missing as root"
