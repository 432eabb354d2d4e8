from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.builder.sources import arrange
from evaluator.collect.collected import Collected, CollectedKernel, KernelTrace, SourceLine
from evaluator.collect.nsight.source_page import parse_source
from tests.advice.planted import CASES
from tests.evaluator.collect.stand_in_ncu import PROFILES, stand_in_gpu, stand_in_ncu
from tests.evaluator.collect.test_source_page import COLUMN_SUMS, DATA
from tests.tools.test_profile import correct, request
from tools.diagnosis.source_map import SourceMap
from tools.profile import profile
from tools.profiling.hot_kernel import stall_lines
from tools.profiling.profile_facts import Facts

CUDA = '''import torch
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void column_sums(const float* a, float* out, int n) {
  float acc = 0.0f;
  for (int r = 0; r < n; r++)
    acc += a[(long)threadIdx.x * n + r];
  out[threadIdx.x] = acc;
}
"""
ext = load_inline(name="x", cpp_sources="", cuda_sources=source, functions=["run"])
'''


def facts(lines: tuple[SourceLine, ...]) -> Facts:
    kernel = CollectedKernel(name="column_sums", launches=1, time_us=1.0, lines=lines)
    return Facts(Collected(gpu=KernelTrace(kernels=(kernel,))), own=frozenset({"column_sums"}))


def test_the_models_own_line_is_quoted_with_what_it_waits_for() -> None:
    # Three lines are put in front of the text, which begins with an empty one.
    assert stall_lines(facts(parse_source(COLUMN_SUMS)), CUDA) == [
        "line 7 `for (int r = 0; r < n; r++)`: 99 % of the stalls, long scoreboard on a load"
        " from global memory"
    ]


def test_lines_of_other_files_are_left_out_and_few_are_told() -> None:
    lines = parse_source((DATA / "tiles_h200_source.csv").read_text())
    found = stall_lines(facts(lines * 3), "\n" * 30)
    assert found == []
    of_triton = tuple(
        SourceLine(file=file, line=number, share=0.3, reason=reason)
        for file, number, reason in [
            ("standard.py", 2, "stall_wait"),
            ("candidate.py", 99, "stall_wait"),
            ("candidate.py", 1, "stall_drain"),
            ("candidate.py", 2, "stall_new_in_this_chip"),
            ("candidate.py", 4, "stall_wait"),
            ("candidate.py", 5, "stall_wait"),
        ]
    )
    told = stall_lines(facts(of_triton), CUDA)
    assert len(told) == 3
    assert told[0] == "line 1 `import torch`: 30 % of the stalls, drain"
    assert "stalls, new_in_this_chip" in told[1]


def test_where_a_function_is_called_and_its_result_used() -> None:
    line = SourceLine(
        file="candidate.py", line=2, share=0.5, reason="stall_short_scoreboard",
        producer="a shuffle", called_at=7, used_at=8,
    )  # fmt: skip
    assert stall_lines(facts((line,)), CUDA) == [
        "line 2 `from torch.utils.cpp_extension import load_inline`, called at line 7: 50 % of the"
        " stalls, short scoreboard on a shuffle, used at line 8"
    ]


def test_every_line_of_an_inline_source_is_found_again() -> None:
    for case in CASES:
        request, mapped = case.build_request("planted"), SourceMap(case.source("planted"))
        (unit,) = (unit for unit in arrange(request).units if unit.device)
        for number, text in list(enumerate(unit.content.splitlines(), 1))[3:]:
            found = mapped.locate(unit.name, number)
            assert not text.strip() or mapped.line(found or 0).strip() == text.strip()


def test_a_profile_tells_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_REFINERY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    stand_in_ncu(tmp_path / "bin", tmp_path / "log", PROFILES)
    stand_in_gpu(monkeypatch)
    source = CUDA.replace("column_sums", "gelu_k")
    told = profile(request(source, device="cuda:0"), correct()).summary
    assert "\n- line 7 `for (int r = 0; r < n; r++)`: 99 % of the stalls, long scoreboard" in told
