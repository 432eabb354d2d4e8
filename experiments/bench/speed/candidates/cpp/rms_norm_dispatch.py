# problem: level1_7_rms_norm
# expected: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
#include <ATen/AccumulateType.h>
#include <ATen/Dispatch.h>
#include <c10/util/irange.h>

namespace {
template <typename scalar_t>
void rms_norm_rows(const scalar_t* x, const scalar_t* weight, scalar_t* y, int64_t rows, int64_t dim,
                   double eps) {
  using acc_t = at::acc_type<scalar_t, false>;
  #pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; r++) {
    acc_t squares = 0;
    for (const auto i : c10::irange(dim)) {
      const acc_t v = x[r * dim + i];
      squares += v * v;
    }
    const acc_t scale = acc_t(1) / std::sqrt(squares / dim + acc_t(eps));
    for (const auto i : c10::irange(dim))
      y[r * dim + i] = static_cast<scalar_t>(x[r * dim + i] * scale * weight[i]);
  }
}
}  // namespace

torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double eps) {
  TORCH_CHECK_EQ(x.size(-1), weight.numel());
  auto input = x.contiguous();
  auto y = torch::empty_like(input);
  const int64_t dim = input.size(-1);
  AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "rms_norm", ([&] {
    rms_norm_rows<scalar_t>(input.data_ptr<scalar_t>(), weight.data_ptr<scalar_t>(),
                            y.data_ptr<scalar_t>(), input.numel() / dim, dim, eps);
  }));
  return y;
}
"""

rms = load_inline(
    name="rms_norm_dispatch",
    cpp_sources=source,
    functions=["rms_norm"],
    verbose=True,
    extra_cflags=["-O3", "-fopenmp", "-march=native"],
    extra_ldflags=["-lgomp"],
)


class ModelNew(nn.Module):
    def __init__(self, dim: int, eps: float):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return rms.rms_norm(x, self.weight, self.eps)
