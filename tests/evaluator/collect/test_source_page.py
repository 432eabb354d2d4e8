"""The exports are of an H200, by ncu 2025.3.1, without the instructions that have few samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.collect.nsight.source_page import likely_kernel, only_spills, parse_source

DATA = Path(__file__).parents[2] / "data" / "ncu"
COLUMN_SUMS = (DATA / "column_sums_h200_source.csv").read_text()


@pytest.mark.parametrize("named", [False, True])
def test_the_line_that_waits_for_memory(named: bool) -> None:
    """A loop that sums a column: the load is inlined from a header, the addition waits for it."""
    page = COLUMN_SUMS
    if named:  # as heads are where the samples were asked for by name
        page = page.replace("_long_sb", "_long_scoreboard").replace(" (Not Issued)", "_not_issued")
        page = page.replace('"stall_', '"smsp__pcsamp_warps_issue_stalled_')
    (line,) = parse_source(page)
    assert (line.file, line.line, line.reason) == ("cuda.cu", 7, "stall_long_scoreboard")
    assert (line.producer, line.called_at) == ("a load from global memory", None)
    assert line.used_at is None
    # Without the samples of warps that issued just then.
    assert line.share == pytest.approx(4158 / 4180)


def test_a_function_of_the_kernels_file_is_told_with_its_call() -> None:
    """As above, with the inlined function in the same file."""
    same_file = COLUMN_SUMS.replace("column.cuh", "cuda.cu")
    (line,) = parse_source(same_file)
    assert (line.line, line.called_at, line.used_at) == (2, 7, None)
    assert line.share > 0.9


def test_lines_come_with_the_worst_first() -> None:
    lines = parse_source((DATA / "tiles_h200_source.csv").read_text())
    # What line 17 waits for is loaded from the tile in line 15.
    assert [(line.line, line.reason, line.producer, line.used_at) for line in lines] == [
        (15, "stall_short_scoreboard", "a load from shared memory", 17),
        (17, "stall_mio_throttle", "", None),
        # Lines 14 and 16 are barriers: warps are sampled at the instruction behind.
        (16, "stall_barrier", "", None),
        (12, "stall_mio_throttle", "", None),
        (14, "stall_barrier", "", None),
    ]
    assert sum(line.share for line in lines) <= 1.0


def test_what_is_spilled_lies_at_fixed_places_of_the_stack() -> None:
    assert only_spills(COLUMN_SUMS) is None
    found = [only_spills(f"LDL.64 R2, [{at}]") for at in ("R1", "R1+0x8", "R14", "R1+UR4")]
    assert found == [True, True, False, False]


def test_quotes_in_a_line_of_source_break_nothing() -> None:
    """The page prints them as they are (seen in its `cuda` view), where the source is at hand."""
    quoted = COLUMN_SUMS.replace("<Unable to open source file>", 'tl.device_print("a","b", x)')
    assert parse_source(quoted) == parse_source(COLUMN_SUMS)


@pytest.mark.parametrize(
    "text",
    [
        "==WARNING== No lineinfo available to show CUDA-C source related to 'k(float *)'.\n",
        "",
        COLUMN_SUMS[:900],
    ],
)
def test_without_line_information_there_are_no_lines(text: str) -> None:
    assert parse_source(text) == ()


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("__global__ void k(float* a) {}\nint main() { k<<<1, 2>>>(a); }", "k"),
        ("template <int N> __global__ void\n  tiles (float* a) {}", "tiles"),
        ("__global__ void __launch_bounds__(256, (int)f(2)) k(int n)", "k"),
        ("__global__ __launch_bounds__(256) void k(int n)", "k"),
        ('extern "C" __global__ static void a(); __global__ void a() {}', "a"),
        ("__global__ void a() {} __global__ void b(int) {}", None),
        ("@triton.jit\ndef rows(x, y):\n", "rows"),
        ("@triton.autotune(configs=[])\n@triton.jit(debug=False)\n  @other\ndef rows(x):\n",
         "rows"),
        ("def forward(self, x):\n    return torch.relu(x)", None),
    ],
)  # fmt: skip
def test_the_kernel_that_a_file_defines(source: str, name: str | None) -> None:
    assert likely_kernel(source) == name
