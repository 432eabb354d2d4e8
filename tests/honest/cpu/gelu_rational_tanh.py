"""tanh as a quotient of polynomials, a few ulp off.

problem: level1_2_gelu_tanh
pace: slow
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <algorithm>

// Odd polynomial over an even one on [-7.9, 7.9]; beyond, tanh is 1 to the last bit.
static inline float fast_tanh(float x) {
  x = std::max(-7.90531110763549805f, std::min(7.90531110763549805f, x));
  const float s = x * x;
  float p = -2.76076847742355e-16f;
  p = p * s + 2.00018790482477e-13f;
  p = p * s - 8.60467152213735e-11f;
  p = p * s + 5.12229709037114e-08f;
  p = p * s + 1.48572235717979e-05f;
  p = p * s + 6.37261928875436e-04f;
  p = p * s + 4.89352455891786e-03f;
  float q = 1.19825839466702e-06f;
  q = q * s + 1.18534705686654e-04f;
  q = q * s + 2.26843463243900e-03f;
  q = q * s + 4.89352518554385e-03f;
  return x * p / q;
}

torch::Tensor gelu(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const float* in = x.data_ptr<float>();
  float* out = y.data_ptr<float>();
  at::parallel_for(0, x.numel(), 32768, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float v = in[i];
      out[i] = 0.5f * v * (1.0f + fast_tanh(0.7978845608f * (v + 0.044715f * v * v * v)));
    }
  });
  return y;
}
"""

extension = load_inline(
    name="gelu_rational",
    cpp_sources=[source],
    functions=["gelu"],
    extra_cflags=["-O3", "-fopenmp", "-mavx2", "-mfma"],
    verbose=True,
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.gelu(x)
