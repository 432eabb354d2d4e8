"""Whatever a candidate does to its process or the machine, the next one is judged as usual."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from evaluator.evaluation import Status
from evaluator.executor.local import LocalExecutor
from evaluator.hardware.device_lock import device_lock
from tests.evaluator.leaks import holdings
from tests.evaluator.made_requests import HONEST, evaluation_request, forward

FAST = {"timing_seconds": 0.05, "call_timeout_s": 10.0}
IMPATIENT = {
    "call_timeout": {"timing_seconds": 0.05, "call_timeout_s": 2.0},
    "import_timeout": {"timing_seconds": 0.05, "import_timeout_s": 2.0},
}


@dataclass(frozen=True)
class Calamity:
    """A candidate that goes wrong, and what must be said of it."""

    source: str
    status: Status
    reasons: tuple[str, ...]


def crash(body: str, *reasons: str, head: str = "import os, signal, sys, time") -> Calamity:
    return Calamity(forward(body, head), Status.RUNTIME_ERROR, reasons)


def hang(body: str, head: str = "import os, signal, sys, time") -> Calamity:
    return Calamity(forward(body, head), Status.TIMEOUT, ("call_timeout",))


def at_import(head: str, *reasons: str, status: Status = Status.RUNTIME_ERROR) -> Calamity:
    return Calamity(f"{head}\n{HONEST}", status, reasons)


def compiled(body: str, status: Status, *reasons: str, head: str = "") -> Calamity:
    """C++ whose `f` is called in forward."""
    code = f"#include <torch/extension.h>\n{head}\ntorch::Tensor f(torch::Tensor x) {{ {body} }}"
    start = (
        "from torch.utils.cpp_extension import load_inline\n"
        f"module = load_inline(name='calamity', cpp_sources={code!r}, functions=['f'])"
    )
    return Calamity(forward("return module.f(x)", start), status, reasons)


FLOOD = "while True:\n    try:\n        os.fork()\n    except OSError:\n        pass"
THREADS = (
    "import threading\ntry:\n    while True:\n"
    "        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    "except RuntimeError as error:\n    raise ValueError('enough') from error"
)
FAMILY = (
    "signals = set(range(1, 65)) - {9, 19, 32, 33}\n"
    "for number in signals:\n    signal.signal(number, signal.SIG_IGN)\n"
    "os.fork() or os.setsid()\nos.fork()\nwhile True:\n    pass"
)
ASSASSIN = (
    "mine = {0, *map(int, os.listdir('/proc/self/task'))}\n"
    "for target in (os.getppid(), 1, -1, *range(2, 2000)):\n"
    "    if target not in mine:\n        try:\n"
    "            os.kill(target, signal.SIGKILL)\n        except OSError:\n            pass\n"
    "raise ValueError('still here')"
)
DEEP = (
    "for _ in range(2000):\n    os.mkdir('d')\n    os.chdir('d')\nraise ValueError('deep enough')"
)
FILL = (
    "block = b'x' * 2**24\ntry:\n    for number in range(8):\n"
    "        with open(f'file{number}', 'wb') as file:\n"
    "            for _ in range(16):\n                file.write(block)\n"
    "except OSError as error:\n    raise ValueError(error.strerror) from None\n"
    "raise ValueError('two GiB written')"
)
TEMPLATES = (
    "template <int N, int M> struct A { static const long v = "
    "A<N - 1, M * 2>::v + A<N - 1, M * 2 + 1>::v; };\n"
    "template <int M> struct A<0, M> { static const long v = M; };"
)
SECRET = "/etc/shadow"

CALAMITIES = {
    "segfault": crash("import ctypes\nctypes.string_at(0)", "segfault"),
    "kills itself": crash("os.kill(os.getpid(), signal.SIGKILL)", "killed"),
    "aborts": crash("os.abort()", "abort"),
    "Python's stack": crash(
        "sys.setrecursionlimit(10**9)\ndef f(n): return sorted([n], key=f)\nf(0)",
        *("segfault", "forward_raised"),
    ),
    "C's stack": compiled(
        "return g(1) > 0 ? x : x * 2;",
        *(Status.RUNTIME_ERROR, "segfault"),
        head="__attribute__((noinline)) static long g(long n) "
        "{ volatile long a[4096]; a[n % 4096] = n; return g(n + 1) + a[n % 4096]; }",
    ),
    "asks for all memory": crash("torch.empty(2**40)", "forward_raised"),
    "takes memory bit by bit": crash(
        "kept = []\nwhile True:\n    kept.append(torch.empty(2**26))", "forward_raised"
    ),
    "loops": hang("while True: pass"),
    "ignores signals and forks": hang(FAMILY),
    "fork flood": hang(FLOOD),
    "thread flood": crash(THREADS, "forward_raised"),
    "exits": crash("sys.exit(0)", "forward_raised"),
    "exits at once": crash("os._exit(0)", "exited"),
    "exits on import": at_import("import sys\nsys.exit(0)", "import_raised"),
    "exits at once on import": at_import("import os\nos._exit(0)", "exited"),
    "hangs on import": at_import("while True: pass", "import_timeout", status=Status.TIMEOUT),
    "leaves a child with its socket": hang("os.fork() and os._exit(0)\ntime.sleep(60)"),
    "closes every descriptor": crash("os.closerange(0, 1024)\nreturn x", "exited"),
    "kills whom it can": crash(ASSASSIN, "forward_raised"),
    "stops itself": hang("os.kill(os.getpid(), signal.SIGSTOP)\nreturn x"),
    "digs deep": crash(DEEP, "forward_raised"),
    "fills the disk": crash(FILL, "forward_raised"),
    "includes a secret": compiled(
        "return x;", Status.BUILD_ERROR, "compile_failed", head=f'#include "{SECRET}"'
    ),
    "assembles a secret": compiled(
        "return x;",
        *(Status.BUILD_ERROR, "compile_failed"),
        head=f'__asm__(".incbin \\"{SECRET}\\"");',
    ),
    "embeds a secret": compiled(
        "return x;",
        *(Status.BUILD_ERROR, "compile_failed"),
        head=f'const char secret[] = {{\n#embed "{SECRET}"\n}};',
    ),
    "compiles for ever": compiled(
        "return x * A<25, 0>::v;", Status.BUILD_ERROR, "compile_failed", head=TEMPLATES
    ),
    "prints errors for ever": compiled(
        "return x;",
        *(Status.BUILD_ERROR, "compile_failed"),
        head='#define A _Pragma("message(\\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\\")")\n'
        + "".join(
            f"#define {b} {a} {a} {a} {a} {a} {a} {a} {a} {a} {a}\n"
            for a, b in zip("ABCDEF", "BCDEFG", strict=True)
        )
        + "G\n",
    ),
}


def secret_lines() -> list[str]:
    text = Path(SECRET).read_text() if os.access(SECRET, os.R_OK) else "root:"
    return [line for line in text.splitlines() if line]


@pytest.mark.thorough
@pytest.mark.parametrize("name", CALAMITIES)
def test_the_next_candidate_is_judged_as_usual(evaluate, name):
    calamity = CALAMITIES[name]
    patience = IMPATIENT.get(calamity.reasons[0], FAST)
    build_timeout_s = 4.0 if name.endswith("for ever") else 60.0
    evaluation = evaluate(calamity.source, build_timeout_s=build_timeout_s, **patience)
    said = f"{evaluation.reason}: {evaluation.message} {evaluation.detail[-500:]}"
    assert evaluation.status is calamity.status, said
    assert evaluation.reason in calamity.reasons, said
    if name.endswith("a secret"):
        told = evaluation.model_dump_json()
        assert not any(line in told for line in secret_lines())
    after = evaluate(HONEST, timing_seconds=0.05)
    assert after.status is Status.CORRECT, after.message


@pytest.mark.thorough
def test_ten_gigabytes_of_words_neither_block_nor_are_kept(evaluate):
    flood = (
        "line = b'x' * 99 + b'\\n'\nleft = 0 if said else 10 * 2**30\nsaid.append(1)\n"
        "while left > 0:\n    left -= os.write(1, line * 1048576)\n"
        "return torch.relu(x * self.scale + self.bias) * 2.0"
    )
    source = forward(flood, "import os\nsaid = []")
    evaluation = evaluate(source, timing_seconds=0.05, call_timeout_s=120.0)
    assert evaluation.status is Status.CORRECT, evaluation.message
    last = evaluate(forward("os.write(1, b'x' * 2**26 + b'last words')\nos.abort()", "import os"))
    assert last.reason == "abort"
    assert "last words" in last.detail and len(last.detail) < 20000


QUICK = (
    *("segfault", "kills itself", "aborts", "Python's stack", "asks for all memory", "exits"),
    *("exits at once", "exits on import", "exits at once on import"),
    *("closes every descriptor", "kills whom it can", "digs deep", "thread flood"),
)
SLOW = ("loops", "ignores signals and forks", "leaves a child with its socket", "stops itself")


def crowd(count: int) -> Iterator[str]:
    """Sources, mixed: one in three is honest, one in twenty hangs."""
    for number in range(count):
        if number % 20 == 10:
            yield CALAMITIES[SLOW[number // 20 % len(SLOW)]].source
        elif number % 3:
            yield CALAMITIES[QUICK[number * 2 // 3 % len(QUICK)]].source
        else:
            yield HONEST


@pytest.mark.thorough
@pytest.mark.parametrize("count", [12, pytest.param(500, marks=pytest.mark.slow)])
def test_a_crowd_leaves_nothing_behind(count, tmp_path, monkeypatch, capsys):
    tmp_path.chmod(0o755)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with LocalExecutor("cpu") as executor:

        def judge(source: str) -> Status:
            request = evaluation_request(source, timing_seconds=0.05, call_timeout_s=3.0)
            return executor.evaluate(request).status

        for source in (HONEST, CALAMITIES["segfault"].source, HONEST):
            judge(source)
        # The device is given back once nothing of the judge's is in the making any more.
        with device_lock("cpu"):
            before = holdings(executor.judge_pids["cpu"])
        statuses = Counter(judge(source) for source in crowd(count))
        with device_lock("cpu"):
            after = holdings(executor.judge_pids["cpu"])
    with capsys.disabled():
        print(f"\n{count} candidates, {dict(statuses)}\n  before {before}\n  after  {after}")
    assert statuses[Status.CORRECT] == sum(source is HONEST for source in crowd(count))
    assert after.processes == before.processes
    # One of a worker in the making comes and goes; a leak would show as one for each candidate.
    assert after.descriptors <= before.descriptors + 2
    assert after.folders == before.folders
    assert after.memory_kib < before.memory_kib + 64 * 1024
