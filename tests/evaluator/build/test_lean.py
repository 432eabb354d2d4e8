"""A source is spared headers that it does not name, and being wrong about it costs time alone."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from evaluator.build import workshop
from evaluator.build.builder import Builder
from evaluator.build.lean import lean_flags
from evaluator.build_request import BuildRequest

ALL = {"LIBRARY", "NUMBERS", "BINDING"}


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("torch::Tensor f(torch::Tensor x) { return x; }", set()),
        ("const float m = std::max(a, std::sqrt(b));", set()),
        ("cudaStream_t stream = c10::cuda::getCurrentCUDAStream();", set()),
        ("C10_CUDA_KERNEL_LAUNCH_CHECK();", set()),
        ("std::sort(v.begin(), v.end());", {"LIBRARY"}),
        ("std :: unordered_map<int, int> known;", {"LIBRARY"}),
        ("using namespace std;", {"LIBRARY"}),
        ("for (auto i : c10::irange(n)) {}", {"LIBRARY"}),
        ("__half2float(h)", {"NUMBERS"}),
        ("AT_DISPATCH_FLOATING_TYPES_AND_HALF(t, name, f)", {"NUMBERS"}),
        ("x.data_ptr<at::BFloat16>()", {"NUMBERS"}),
        ("C10_HOST_DEVICE float f();", {"NUMBERS"}),
        ("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}", {"BINDING"}),
        ("void f(py::object o);", {"BINDING"}),
    ],
)
def test_what_is_named_is_read(text: str, read: set[str]) -> None:
    left_out = {flag.removeprefix("-DREFINERY_LEAN_") for flag in lean_flags(text)}
    assert ALL - left_out == read


@dataclass
class Compiled:
    """The compiler runs of one build, each with what it was told to leave out."""

    left_out: list[set[str]] = field(default_factory=list)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Compiled:
    seen = Compiled()
    run = workshop.Workshop.run

    def watched(self, command, folder, timeout_s):
        if "-c" in command:
            seen.left_out.append({word for word in command if "REFINERY_LEAN" in word})
        return run(self, command, folder, timeout_s)

    monkeypatch.setattr(workshop.Workshop, "run", watched)
    return seen


def test_a_name_that_was_overlooked_costs_a_second_compilation(
    builder: Builder, compiled: Compiled
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
    assert [bool(left_out) for left_out in compiled.left_out] == [True, False]
