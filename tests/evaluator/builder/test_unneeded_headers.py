"""A source is spared headers that it does not name, and being wrong about it costs time alone."""

from __future__ import annotations

import pytest

from evaluator.builder import workshop
from evaluator.builder.builder import Builder
from evaluator.builder.unneeded_headers import lean_flags, may_lack
from evaluator.ipc.build_request import BuildRequest


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("torch::Tensor f(torch::Tensor x) { return x; }", set()),
        ("const float m = std::max(a, std::sqrt(b));", set()),
        ("cudaStream_t stream = c10::cuda::getCurrentCUDAStream();", set()),
        ("std :: unordered_map<int, int> known;", {"LIBRARY"}),
        ("using namespace std;", {"LIBRARY"}),
        ("for (auto i : c10::irange(n)) {}", {"LIBRARY"}),
        ("__half2float(h)", {"NUMBERS"}),
        ("AT_DISPATCH_REDUCED_FLOATING_TYPES(t, name, f)", {"NUMBERS"}),
        ("x.data_ptr<at::BFloat16>()", {"NUMBERS"}),
        ("__nv_fp8_e4m3 x;", {"NUMBERS"}),
    ],
)
def test_what_is_named_is_read(text: str, read: set[str]) -> None:
    flags = set(lean_flags(text))
    assert ("-DCCCL_DISABLE_FP16_SUPPORT" in flags) is ("NUMBERS" not in read)
    left_out = {flag.removeprefix("-DREFINERY_LEAN_") for flag in flags}
    assert {"LIBRARY", "NUMBERS"} - left_out == read


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ('cuda.cu(35): error: identifier "stride" is undefined', False),
        ("main.cpp:13:24: error: 'columns' was not declared in this scope; did you", False),
        ('cuda.cu(9): error: expected a ";"', False),
        ("main.cpp:9:3: error: expected ';' before 'return'", False),
        ('cuda.cu(35): error: identifier "sort" is undefined', True),
        ("main.cpp:2:5: error: 'unique_ptr' was not declared in this scope", True),
        ('cuda.cu(3): error: identifier "__half2" is undefined', True),
        ('cuda.cu(3): error: namespace "std" has no member "gcd"', True),
        ('refinery/core.h(302): error: static assertion failed with "a message needs st', True),
        ("Killed", True),
    ],
)
def test_an_error_that_is_plainly_the_sources_own(printed: str, expected: bool) -> None:
    assert may_lack(f"{printed}\n") is expected


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The compiler runs of one build: what each was told to leave out."""
    seen: list[set[str]] = []
    run = workshop.Workshop.run

    def watched(self, command, folder, timeout_s):
        if "-c" in command:
            seen.append({word for word in command if "REFINERY_LEAN" in word})
        return run(self, command, folder, timeout_s)

    monkeypatch.setattr(workshop.Workshop, "run", watched)
    return seen


def test_a_name_that_was_overlooked_costs_a_second_compilation(
    builder: Builder, compiled: list[set[str]]
) -> None:
    sums = """
        #include <torch/extension.h>
        double sums(std::vector<double> v) { return accumulate(v.begin(), v.end(), 0.25); }
    """
    outcome = builder.build(
        BuildRequest(name="overlooked", cpp_sources=(sums,), functions=(("sums", ""),))
    )
    assert outcome.ok, outcome.log
    assert (outcome.headers, outcome.log) == ("light", "")
    assert [bool(left_out) for left_out in compiled] == [True, False]


def test_a_mistake_of_the_sources_own_is_compiled_once(
    builder: Builder, compiled: list[set[str]]
) -> None:
    wrong = """
        #include <torch/extension.h>
        torch::Tensor twice(torch::Tensor x) { return x * factor; }
    """
    outcome = builder.build(
        BuildRequest(name="mistaken", cpp_sources=(wrong,), functions=(("twice", ""),))
    )
    assert not outcome.ok
    assert "factor" in outcome.log
    assert len(compiled) == 1
