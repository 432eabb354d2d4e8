"""Reports of the real AddressSanitizer of this machine, and texts as compute-sanitizer has them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from evaluator.audit_record import DeepAudit, Finding, SanitizerRun, Tool
from evaluator.deep_audit.address_report import memory_finding, undefined_findings
from evaluator.deep_audit.compiled_text import compiled_texts, with_lines
from evaluator.deep_audit.compute_report import assertion_findings, findings_of
from evaluator.deep_audit.own_code import OwnCode
from evaluator.evaluation import Evaluation, Status
from evaluator.ipc.build_request import BuildRequest
from tests.evaluator.deep_audit.test_compute_report import ASSERTION
from tools.diagnosis.diagnose import explain

CODE = r"""
static float table[8];
static float* none = nullptr;
static float deep(long n) {
  volatile float big[2048];
  big[n % 2048] = n;
  return deep(n + 1) + big[3];
}
static void fill(float* p, long n) {
  for (long i = 0; i <= n; ++i)
    p[i] = 1.0f;
}
int work(int which, int k) {
  float* block = new float[100];
  float local[4] = {0};
  if (which == 0) fill(block, 100);
  if (which == 1) block[-k] = 1.0f;
  if (which == 2) block[100 + 50 * k] = 1.0f;
  if (which == 3) none[k] = 1.0f;
  if (which == 4) return deep(k);
  if (which == 5) { delete[] block; return block[k]; }
  if (which == 6) { delete[] block; }
  if (which == 7) ((volatile float*)local)[3 + k] = 1.0f;
  if (which == 8) ((volatile float*)table)[7 + k] = 1.0f;
  if (which == 9) return 7 / (k - 1);
  if (which == 10) throw which;
  delete[] block;  // at last
  return 0;
}
"""
SOURCE = f'''import torch
from torch.utils.cpp_extension import load_inline

code = r"""{CODE}"""
kernels = load_inline(name="kernels", cpp_sources=[code], functions=["work"])
'''
MAIN = "#include <cstdlib>\nint main(int n, char** a) { return work(atoi(a[1]), n - 1); }\n"
REQUEST = BuildRequest(name="kernels", cpp_sources=(CODE,), functions=(("work", "work"),))
OPTIONS = "detect_leaks=0:handle_abort=2:handle_sigfpe=2:print_legend=0:stack_trace_format="


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code above behind the line that the builder puts in front, with both sanitizers."""
    folder = tmp_path_factory.mktemp("build") / "work-real"
    folder.mkdir()
    # The C++ of the candidate, without the header and the binding.
    (folder / "main.cpp").write_text("\n" + CODE + MAIN)
    flags = ["-g", "-O1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-w"]
    command = ["g++", *flags, str(folder / "main.cpp"), "-o", str(folder / "program")]
    subprocess.run(command, check=True)
    return folder / "program"


def report(program: Path, which: int) -> str:
    done = subprocess.run(
        [program, str(which)],
        capture_output=True,
        text=True,
        check=False,
        env={"ASAN_OPTIONS": OPTIONS + '"    #%n %f %S"'},
    )
    return done.stderr


def line_of(text: str, source: str = SOURCE) -> int:
    return next(n for n, line in enumerate(source.splitlines(), 1) if text in line)


def told(findings: list[Finding], tool: Tool = Tool.ADDRESS, source: str = SOURCE) -> str:
    return told_of(SanitizerRun(tool=tool, outcome="findings", findings=tuple(findings)), source)


def told_of(run: SanitizerRun, source: str = SOURCE) -> str:
    evaluation = Evaluation(
        status=Status.RUNTIME_ERROR,
        reason="segfault",
        message="the process was ended by SIGSEGV during the call of forward",
        audit=DeepAudit(occasion="crash", sanitizers=(run,)),
    )
    return explain(evaluation, source)


@pytest.mark.parametrize(
    ("which", "kind", "line", "parts", "meaning"),
    [
        (0, "heap-buffer-overflow", "p[i] = 1.0f",
         ("WRITE of size 4, 0 bytes after 400-byte region", "called from:", "fill(block, 100)"),
         "just past the end"),
        (1, "heap-buffer-overflow", "block[-k]", ("4 bytes before 400-byte region",), "below 0"),
        (2, "heap-buffer-overflow", "block[100 + 50 * k]", ("200 bytes after",), "far outside"),
        (3, "SEGV", "none[k] = 1.0f", ("WRITE through a null pointer",), "never set"),
        (4, "stack-overflow", "float deep(long n)", ("in deep",), "recursion without end"),
        (5, "heap-use-after-free", "return block[k]", ("freed at line",), "what is gone"),
        (6, "double-free", "// at last", ("allocated at line",), "given back twice"),
        (7, "stack-buffer-overflow", "local)[3 + k]", (": local",), "fixed size"),
        (8, "global-buffer-overflow", "table)[7 + k]", ("'table' of 32 bytes",), "fixed size"),
        (9, "FPE", "7 / (k - 1)", ("in work",), "division by zero"),
        (10, "ABRT", "throw which", ("in work",), "exception"),
    ],
)  # fmt: skip
def test_what_the_real_sanitizer_reports(
    program: Path, which: int, kind: str, line: str, parts: tuple[str, ...], meaning: str
) -> None:
    finding = memory_finding(report(program, which))
    assert finding is not None and finding.kind == kind
    finding = with_lines(finding, compiled_texts([REQUEST]))
    text = told([finding])
    marked = [row for row in text.splitlines() if row.startswith(">")]
    assert line in marked[0] and f"{line_of(line):4d} |" in marked[0], text
    for part in (kind, *parts):
        assert part in text
    assert meaning in text.splitlines()[-1]
    assert len(text.splitlines()) <= 12
    assert "0x" not in text and str(program.parent) not in text and "work-" not in text


def test_undefined_behaviour_is_told_beside_it(program: Path) -> None:
    found = undefined_findings(report(program, 9).replace(f"{program.parent}/", ""))
    texts = compiled_texts([REQUEST])
    first = Finding(kind="FPE", text="", frames=("at::add",))
    text = told([first, *(with_lines(each, texts) for each in found)])
    assert "division by zero" in text and f"> {line_of('7 / (k - 1)'):4d} |" in text


def test_without_the_source_the_place_is_told_and_no_line(program: Path) -> None:
    finding = memory_finding(report(program, 0))
    assert finding is not None
    text = told([with_lines(finding, compiled_texts([REQUEST]))], source="")
    assert "At main.cpp line 12, in fill." in text and "p[i]" not in text


KERNEL = r"""
template <typename T> __global__ void scale_kernel(const T* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = 2 * x[i];
}
"""
CUDA_SOURCE = f'''kernels = load_inline("k", "void run();", r"""{KERNEL}""", functions=["run"])
'''
CUDA_TEXTS = compiled_texts(
    [BuildRequest(name="k", cpp_sources=("void run();",), cuda_sources=(KERNEL,), with_cuda=True)]
)
OWN = OwnCode(libraries=1, kernels=frozenset({"scale_kernel"}))
MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ {access} of size 4 bytes
=========     at void scale_kernel<float>(const float *, int)+0x70 in cuda.cu:7
=========     by thread (33,0,0) in block (7,0,0)
=========     {address}
=========
========= ERROR SUMMARY: 1 error
"""
OUT_OF_BOUNDS = """Access at 0x7f1203fffffc is out of bounds
=========     and is 5 bytes after the nearest allocation at 0x7f1203c00000 of size 4,096 bytes"""


@pytest.mark.parametrize(
    ("address", "parts", "meaning"),
    [
        (OUT_OF_BOUNDS, ("5 bytes after the nearest allocation", "of size 4,096 bytes"), "past"),
        ("Address 0x7f1203fffffd is misaligned", ("is misaligned",), "float4"),
    ],
)
def test_memcheck_names_line_thread_and_block(
    address: str, parts: tuple[str, ...], meaning: str
) -> None:
    log = MEMCHECK.format(access="read", address=address)
    findings = [with_lines(each, CUDA_TEXTS) for each in findings_of(Tool.MEMCHECK, log, OWN)]
    text = told(findings, Tool.MEMCHECK, CUDA_SOURCE)
    for part in ("Invalid __global__ read of size 4 bytes", "by thread (33,0,0) in block (7,0,0)"):
        assert part in text
    for part in parts:
        assert part in text
    assert f"At line {line_of('2 * x[i]', CUDA_SOURCE)}, in scale_kernel:" in text
    assert f"> {line_of('2 * x[i]', CUDA_SOURCE):4d} |   x[i] = 2 * x[i];" in text
    assert meaning in text.splitlines()[-1] and "0x" not in text
    assert len(text.splitlines()) <= 12


def test_a_kernels_assertion_is_told_with_its_thread() -> None:
    log = ASSERTION.replace("cuda.cu:14", "cuda.cu:6")
    text = told([with_lines(each, CUDA_TEXTS) for each in assertion_findings(log)], Tool.MEMCHECK)
    assert "device-side assert: `i < n` failed; by thread (31,0,0) in block (2,0,0)" in text


def test_triton_names_the_candidates_own_lines() -> None:
    source = "import triton\n@triton.jit\ndef scale_kernel(x):\n    tl.store(x + 9, 1)\n"
    log = MEMCHECK.format(access="write", address=OUT_OF_BOUNDS)
    log = log.replace("void scale_kernel<float>(const float *, int)", "scale_kernel")
    log = log.replace("cuda.cu:7", "candidate.py:4")
    text = told(list(findings_of(Tool.MEMCHECK, log, OWN)), Tool.MEMCHECK, source)
    assert ">    4 |     tl.store(x + 9, 1)" in text


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (SanitizerRun(tool=Tool.ADDRESS, outcome="clean", calls=3), "did not fail in 3 calls"),
        (SanitizerRun(tool=Tool.ADDRESS, outcome="inconclusive", note="too slow"), "too slow"),
        (SanitizerRun(tool=Tool.MEMCHECK, outcome="not_run", note="not installed"), "SIGSEGV"),
    ],
)
def test_where_nothing_was_found_that_is_told_and_the_signal_explained(
    run: SanitizerRun, words: str
) -> None:
    text = told_of(run)
    assert words in text and "What that usually means" in text and "not installed" not in text


def test_a_file_that_two_extensions_have_is_told_by_its_function() -> None:
    other = BuildRequest(name="other", cpp_sources=(CODE.replace("fill", "clear"),))
    texts = compiled_texts([REQUEST, other])
    finding = Finding(kind="SEGV", text="", file="main.cpp", line=12, frames=("fill main.cpp:12",))
    assert with_lines(finding, texts).lines["main.cpp:12"] == "    p[i] = 1.0f;"
    unclear = finding.model_copy(update={"frames": ("work main.cpp:12",)})
    assert with_lines(unclear, texts).lines == {}
