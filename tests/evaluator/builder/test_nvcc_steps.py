"""nvcc's steps side by side make what nvcc makes, and say what it says."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from evaluator.builder.nvcc_steps import HALVES, side_by_side
from evaluator.builder.toolchain import Toolchain
from tests.nvcc import needs_nvcc

SAID = (Path(__file__).parents[2] / "data" / "nvcc" / "dryrun_13_0.txt").read_text()
"""What nvcc 13.0 printed for one file and one architecture; folders have other names."""
KEY = "0123456789abcdef0"


def lines(*, tool: str) -> tuple[str, str]:
    """The lines of `SAID` before a step of that tool, and it with those behind it."""
    found = re.search(rf'^#\$ "?[^ ]*{re.escape(tool)}"? .*$', SAID, re.MULTILINE)
    assert found is not None
    return SAID[: found.start()], SAID[found.start() :]


def test_halves_run_at_once_and_the_last_step_waits_for_both() -> None:
    command = side_by_side(SAID, "cuda.cu", KEY)
    assert command is not None
    shell, option, script = command
    assert (shell, option) == ("/bin/sh", "-c")
    (device,) = [line for line in script.splitlines() if line.startswith("{")]
    assert device.endswith("} > tmp/device.log 2>&1 &")
    order = [device.index(word) for word in ("-E", "/nvvm/bin/cicc ", "ptxas ", "fatbinary ")]
    assert order == sorted(order)
    assert "cudafe++" not in device
    host = script[script.index("device.log 2>&1 &\n") :]
    order = [host.index(word) for word in ("-E", "cudafe++ ", "wait $!", " -c -x c++ ")]
    assert order == sorted(order)
    assert "--gen_module_id_file" not in script
    assert script.count("_01234567_7_cuda_cu_89abcdef > ") == 1
    named = re.findall(r"\S+\.module_id", script)
    assert len(named) == 3 and len(set(named)) == 1, "it is written, and each half reads it"
    assert "-MF cuda.cu.device.d" in device
    assert "-MF cuda.cu.d" in host


def test_the_order_in_which_nvcc_names_them_is_no_matter() -> None:
    # Older ones compile for the device before they preprocess for the host.
    before, split = lines(tool="cudafe++")
    first, *rest = split.splitlines(keepends=True)
    device, host = rest[:3], rest[3:]
    moved = "".join((before, *device, first, *host))
    assert moved != SAID
    assert side_by_side(moved, "cuda.cu", KEY) == side_by_side(SAID, "cuda.cu", KEY)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "nvcc fatal   : Unknown option '-x'\n",
        SAID.replace("--gen_module_id_file", ""),
        SAID.replace("cicc", "other"),
        SAID + "#$ nvlink cuda.o -o linked.o\n",
        SAID + '#$ ptxas -arch=sm_80 "again.ptx" -o "again.cubin"\n',
        re.sub(r"(#\$ ptxas .*)", r"\1 > /tmp/stdout 2>/tmp/stderr", SAID),
        SAID + '#$ "unbalanced\n',
        "".join(lines(tool="fatbinary")[:1]),
    ],
)  # fmt: skip
def test_steps_of_another_kind_are_left_to_nvcc(said: str) -> None:
    assert side_by_side(said, "cuda.cu", KEY) is None


SOURCES = {
    "right": '#include "both.h"\n__global__ void k(float* x) { x[threadIdx.x] = TWO; }\n',
    "several": """
__constant__ float table[4];
static __device__ int counter;
namespace { __global__ void hidden(float* x) { x[threadIdx.x] += table[0]; } }
template <typename T> __global__ void made(T* x) { int unused; atomicAdd(&counter, 1); }
void run(float* x) { hidden<<<1, 32>>>(x); made<float><<<1, 32>>>(x); made<int><<<1, 1>>>(0); }
""",
    "wrong on the device": """
__global__ void k(float* x) {
#ifdef __CUDA_ARCH__
  x[0] = nothing;
#endif
}
""",
    "wrong on the host": "#ifndef __CUDA_ARCH__\nint y = nothing;\n#endif\n",
    "wrong for ptxas": '__global__ void k() { asm("nonsense.f32 %r1;"); }\n',
    "wrong for all": "__global__ void k(float* x) { x = 1.0.0; }\n",
    "no header": '#include "missing.h"\n',
}


def built(tools: Toolchain, folder: Path, options: Iterable[str], key: str) -> tuple[int, str]:
    """Exit code of one compilation, by its steps where there is a `key`, and what it said."""
    command = [*tools.device_command("name", "cuda.cu", ("-O2",), None), *options]
    steps = side_by_side(tools.device_steps(command, folder), "cuda.cu", key) if key else command
    assert steps is not None
    environment = tools.environment | {"TMPDIR": str(folder / "tmp")}
    done = subprocess.run(steps, cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@needs_nvcc
@pytest.mark.parametrize("name", SOURCES)
def test_the_object_and_what_is_said_are_nvccs(name: str, tmp_path: Path) -> None:
    tools = Toolchain.find("9.0a", with_cuda=True)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "cuda.cu").write_text(SOURCES[name])
    (tmp_path / "both.h").write_text("#define TWO 2.0f\n")
    # With these its files have the same names each time, and the identifier can be read.
    kept = ("--keep", "--keep-dir", "tmp")
    code, said = built(tools, tmp_path, kept, "")
    made = tmp_path / "cuda.cu.o"
    expected = made.read_bytes() if made.exists() else None
    named = [file.read_text() for file in (tmp_path / "tmp").glob("*.module_id")]
    key = named[0][1:9] + named[0][-8:] if named else KEY
    made.unlink(missing_ok=True)
    for left in (tmp_path / "tmp").iterdir():
        left.unlink()
    assert built(tools, tmp_path, kept, key) == (code, said)
    assert (made.read_bytes() if made.exists() else None) == expected
    assert (code == 0) == (expected is not None) == (name in ("right", "several"))


@needs_nvcc
def test_what_either_half_reads_is_listed(tmp_path: Path) -> None:
    tools = Toolchain.find("9.0a", with_cuda=True)
    for half in ("device", "host"):
        (tmp_path / f"{half}.h").write_text("")
    (tmp_path / "cuda.cu").write_text(
        '#ifdef __CUDA_ARCH__\n#include "device.h"\n#else\n#include "host.h"\n#endif\n'
    )
    assert built(tools, tmp_path, (), KEY)[0] == 0
    listed = [(tmp_path / f"cuda.cu{ending}").read_text() for ending in HALVES]
    assert [("host.h" in text, "device.h" in text) for text in listed] == [
        (True, False),
        (False, True),
    ]
    for text in listed:
        assert tools.forbidden_include(text, ()) is None
        assert tools.forbidden_include(text.replace("cuda.cu ", "/etc/passwd ", 1), ()) is not None
