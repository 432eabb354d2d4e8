from __future__ import annotations

import time

import pytest

from evaluator.deep_audit.early_warnings import early_warnings
from tests.evaluator.deep_audit.programs import OWN
from tests.evaluator.made_requests import HONEST


def native(code: str) -> str:
    return f'source = r"""\nvoid run() {{ {code}; }}\n"""\n'


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("import threading", "threads"),
        ("from concurrent.futures import ThreadPoolExecutor", "threads"),
        ("import gc", "garbage collector"),
        ("import inspect", "inspection"),
        ("import ctypes", "ctypes"),
        ("import os\nos.environ['A']", "environment"),
        ("import subprocess", "processes"),
        ("torch.allclose = lambda *a: True", "changes what everybody shares"),
        ("torch.Tensor.__eq__ = 1", "changes what everybody shares"),
        ("exec('x = 1')", "code made at run time"),
        ("cache[x.data_ptr()] = y", "remembers by address"),
        ("if x.data_ptr() == last: pass", "remembers by address"),
        ("try:\n    y = kernel(x)\nexcept Exception:\n    y = x", "try/except"),
        ("class ModelNew(Model):\n    pass", "inherits from Model"),
        ("s = torch.cuda.Stream()", "nothing seems to wait for"),
        (native("std::thread t(work)"), "threads of its own"),
        (native("auto t = std::chrono::now()"), "clocks"),
        (native('getenv("HOME")'), "environment variables"),
        (native('dlsym(h, "f")'), "by name at run time"),
        (native('fopen("/etc/passwd", "r")'), "files"),
        (native("cudaGraphLaunch(g, s)"), "CUDA graphs"),
        (native("cblas_sgemm(1)"), "library's kernels"),
        (native("auto y = at::mm(a, b)"), "PyTorch's operators"),
    ],
)
def test_what_stands_out_is_told(source: str, word: str) -> None:
    assert any(word in warning for warning in early_warnings(source)), early_warnings(source)


def test_plain_kernels_raise_no_eyebrow() -> None:
    assert early_warnings(HONEST) == ()
    assert early_warnings(OWN) == ()


def test_handing_an_address_to_a_kernel_is_nothing_special() -> None:
    assert early_warnings("launch(x.data_ptr(), y.data_ptr())") == ()


def test_comments_are_not_code() -> None:
    assert early_warnings(native("int x; // like std::thread, but dlopen() free\n")) == ()


def test_who_joins_is_not_said_to_leave_threads_behind() -> None:
    warnings = early_warnings(native("std::thread t(work); t.join()"))
    assert any("threads of its own" in warning for warning in warnings)
    assert not any("nothing seems to wait for" in warning for warning in warnings)


def test_what_is_no_python_has_failed_elsewhere() -> None:
    assert early_warnings("def (") == ()


@pytest.mark.parametrize(
    "source",
    [
        "torch" + ".a" * 900 + " = 1",
        "f(" + " + ".join(["x.data_ptr()"] * 3000) + ")\n",
        "\n".join(f"y = x{n}.data_ptr() == s.Stream()" for n in range(20000)),
        f"source = '''{{;{'/*' * 200_000}'''",
        "(" * 199 + ")" * 199 + ".a" * 100_000,
        "x = 1\n" * 300_000,
    ],
)
def test_hostile_text_is_read_within_seconds(source: str) -> None:
    begin = time.process_time()
    early_warnings(source)
    assert time.process_time() - begin < 10
