"""The judge on a GPU: shared device memory, device times, crashes that stay in the worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluator.evaluation import Backend, Evaluation, Status, Verdict
from evaluator.executor.local import LocalExecutor
from tests.evaluator.conftest import Evaluate
from tests.evaluator.made_requests import HONEST, SCALE_AND_BIAS, evaluation_request, forward
from tests.task import as_candidate, task

pytestmark = pytest.mark.gpu

LARGE = SCALE_AND_BIAS.replace("256, 512", "16384, 4096")

_HEAD = """
# plan: one fused pass
from torch.utils.cpp_extension import load_inline

cuda_source = r'''
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void scaled_kernel(const float* x, const float* s, const float* b, float* y,
                              long n, int columns) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i] * s[i % columns] + b[i % columns];
        y[i] = v > 0.f ? 2.f * v : 0.f;
    }
}

torch::Tensor scaled(torch::Tensor x, torch::Tensor s, torch::Tensor b) {
    auto y = torch::empty_like(x);
    long n = x.numel();
    scaled_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), s.data_ptr<float>(),
        b.data_ptr<float>(), y.data_ptr<float>(), n, (int)x.size(1));
    return y;
}
'''
kernels = load_inline(
    name="kernels",
    cpp_sources="torch::Tensor scaled(torch::Tensor x, torch::Tensor s, torch::Tensor b);",
    cuda_sources=cuda_source,
    functions=["scaled"],
    verbose=True,
    extra_cuda_cflags=["-O3"],
)
"""
CUDA = forward("return kernels.scaled(x, self.scale, self.bias)", _HEAD)


@pytest.fixture(scope="module")
def gpu() -> Iterator[Evaluate]:
    with LocalExecutor("cuda:0") as executor:

        def judge(
            source: str,
            reference: str = LARGE,
            backend: Backend = Backend.CUDA,
            **settings: object,
        ) -> Evaluation:
            chosen = {"device": "cuda:0", "timing_seconds": 1.0}
            request = evaluation_request(source, reference, backend=backend, **(chosen | settings))
            return executor.evaluate(request)

        yield judge


def test_an_honest_copy_is_as_fast_as_eager(gpu):
    evaluation = gpu(HONEST, timing_seconds=5.0)
    print(evaluation.model_dump_json(indent=1))
    assert evaluation.status is Status.CORRECT, evaluation.message + evaluation.detail
    timing = evaluation.timing
    assert 0.97 < timing.speedup < 1.03
    assert timing.floor_us < timing.latency_us
    assert 0 < timing.sol_fraction < 1
    assert timing.wall_latency_us >= timing.latency_us


def test_a_fused_kernel_is_faster(gpu):
    evaluation = gpu(CUDA)
    print(evaluation.model_dump_json(indent=1))
    assert evaluation.status is Status.CORRECT, evaluation.message + evaluation.detail
    assert evaluation.timing.verdict is Verdict.FASTER
    assert evaluation.build.headers == "light"


def test_a_kernel_that_is_far_slower(gpu):
    slow = HONEST.replace("return ", "for _ in range(8):\n            x = x * 1.0\n        return ")
    evaluation = gpu(slow)
    print(evaluation.model_dump_json(indent=1))
    assert evaluation.status is Status.CORRECT, evaluation.message + evaluation.detail
    assert evaluation.timing.workers > 1 and evaluation.timing.verdict is Verdict.SLOWER
    searched = gpu(slow, timing_seconds=0.5).timing
    assert searched.workers == 1 and searched.verdict is Verdict.SLOWER


def test_an_illegal_access_stays_in_its_worker(gpu):
    evaluation = gpu(CUDA.replace("if (i < n) {", "if (true) { i += 1L << 40;"))
    assert evaluation.status is Status.RUNTIME_ERROR
    assert "illegal memory access" in evaluation.message
    assert gpu(CUDA).status is Status.CORRECT


def test_a_change_that_reads_out_of_range_ends_its_worker_alone(gpu):
    """Over the other axis the indices are too large: an assertion on the device."""
    rows = task(
        "return torch.index_select(x, 0, rows) * 2.0",
        x="torch.randn(4096, 64)",
        rows="torch.randint(64, 4096, (4096,))",
    )
    right = as_candidate(rows)
    evaluation = gpu(right.replace("* 2.0", "* torch.linspace(1, 3, 64, device=x.device)"), rows)
    assert (evaluation.status, evaluation.reason) == (Status.INCORRECT, "wrong_values")
    assert evaluation.correctness.mismatch.patterns
    assert "counterfactual" not in evaluation.correctness.mismatch.details
    assert gpu(right, rows).status is Status.CORRECT


@pytest.mark.parametrize("precision", ["fp16", "bf16", "tf32"])
def test_other_precisions(gpu, precision):
    evaluation = gpu(HONEST, precision=precision)
    assert evaluation.status is Status.CORRECT, evaluation.message


def test_what_a_user_gets_for_one_line_is_a_baseline_too(gpu):
    asked = ("eager", "compile", "cuda_graph", "max_autotune", "cudnn_benchmark")
    evaluation = gpu(CUDA, baselines=asked, timing_seconds=4.0)
    assert evaluation.status is Status.CORRECT
    assert set(evaluation.timing.baselines) == set(asked), evaluation.notes


CONVOLUTION = task(
    "return self.conv(x)",
    init="self.conv = nn.Conv2d(128, 128, 3, padding=1)",
    x="torch.randn(32, 128, 56, 56)",
)


def test_pytorchs_default_flags_are_a_rival_where_they_matter(gpu):
    own = CONVOLUTION.replace("Model(", "ModelNew(")
    evaluation = gpu(own, CONVOLUTION, timing_seconds=2.0)
    assert evaluation.status is Status.CORRECT, evaluation.message
    rivals = evaluation.timing.baselines
    assert rivals["eager"].flags == "fp32, TF32 off"
    assert rivals["default_flags"].flags.startswith("PyTorch's default flags")
    assert rivals["default_flags"].latency_us < rivals["eager"].latency_us
    assert rivals["default_flags"].speedup < rivals["eager"].speedup


RECURRENT = task(
    "return self.rnn(x)[0]",
    init="self.rnn = nn.LSTM(256, 256, num_layers=4, batch_first=True)",
    x="torch.randn(8, 16, 256)",
)


def test_a_graph_over_the_weights_of_a_recurrent_module(gpu):
    """They stay where they are. KernelBench's protocol moves the module before each trial; whether
    the graph is right there depends on what becomes of the old buffers."""
    body = (
        "if not hasattr(self, 'graph'):\n"
        "            self.given = x.clone()\n"
        "            self.rnn(self.given)\n"
        "            torch.cuda.synchronize()\n"
        "            self.graph = torch.cuda.CUDAGraph()\n"
        "            with torch.cuda.graph(self.graph):\n"
        "                self.result = self.rnn(self.given)[0]\n"
        "        self.given.copy_(x)\n"
        "        self.graph.replay()\n"
        "        return self.result.clone()"
    )
    captured = RECURRENT.replace("Model(", "ModelNew(").replace("return self.rnn(x)[0]", body)
    assert gpu(captured, RECURRENT).status is Status.CORRECT
