# plan: the product in pieces of 2048 rows, which stay in L2 until the epilogue in place (bias, swish, bias, group norm) reads them
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
__inline__ __device__ float sum16(float v) {
  for (int d = 8; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}
__inline__ __device__ float swish(float v) { return v / (1.f + expf(-v)); }

// A block keeps its 1024 columns: their parameters are loaded once for eight rows.
__global__ void __launch_bounds__(256) epilogue_k(float* __restrict__ x, const float* __restrict__ first,
                                                  const float* __restrict__ bias, const float* __restrict__ w,
                                                  const float* __restrict__ b, int columns4, float eps) {
  const int c = blockIdx.x * 256 + threadIdx.x;
  const float4 f = reinterpret_cast<const float4*>(first)[c], a = reinterpret_cast<const float4*>(bias)[c];
  const float4 g = reinterpret_cast<const float4*>(w)[c], h = reinterpret_cast<const float4*>(b)[c];
  float4* at = reinterpret_cast<float4*>(x) + (size_t)blockIdx.y * 8 * columns4 + c;
  float4 v[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) v[i] = at[(size_t)i * columns4];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    float4 u = v[i];
    u.x = swish(u.x + f.x) + a.x; u.y = swish(u.y + f.y) + a.y; u.z = swish(u.z + f.z) + a.z; u.w = swish(u.w + f.w) + a.w;
    const float mean = sum16((u.x + u.y) + (u.z + u.w)) * (1.f / 64.f);
    u.x -= mean; u.y -= mean; u.z -= mean; u.w -= mean;
    const float var = sum16((u.x * u.x + u.y * u.y) + (u.z * u.z + u.w * u.w)) * (1.f / 64.f);
    const float r = rsqrtf(var + eps);
    u.x = u.x * r * g.x + h.x; u.y = u.y * r * g.y + h.y; u.z = u.z * r * g.z + h.z; u.w = u.w * r * g.w + h.w;
    at[(size_t)i * columns4] = u;
  }
}

void epilogue(torch::Tensor x, torch::Tensor first, torch::Tensor bias, torch::Tensor w, torch::Tensor b, double eps) {
  const int rows = x.size(0), columns = x.size(1);
  TORCH_CHECK(rows % 8 == 0 && columns % 1024 == 0, "whole pieces");
  epilogue_k<<<dim3(columns / 1024, rows / 8), 256>>>(x.data_ptr<float>(), first.data_ptr<float>(), bias.data_ptr<float>(),
      w.data_ptr<float>(), b.data_ptr<float>(), columns / 4, (float)eps);
}
"""

kernels = load_inline(
    name="swish_norm_pieces",
    cpp_sources="void epilogue(torch::Tensor x, torch::Tensor first, torch::Tensor bias, torch::Tensor w, torch::Tensor b, double eps);",
    cuda_sources=CUDA_SOURCE,
    functions=["epilogue"],
    extra_cuda_cflags=["-O3"],
)

ROWS = 2048


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, num_groups, bias_shape):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        assert out_features // num_groups == 64

    def forward(self, x):
        weight, norm = self.matmul.weight.t(), self.group_norm
        y = torch.empty(x.size(0), weight.size(1), device=x.device, dtype=x.dtype)
        for begin in range(0, x.size(0), ROWS):
            piece = y[begin : begin + ROWS]
            torch.mm(x[begin : begin + ROWS], weight, out=piece)
            kernels.epilogue(piece, self.matmul.bias, self.bias, norm.weight, norm.bias, norm.eps)
        return y
