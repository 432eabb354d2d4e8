# plan: cuBLAS for the product with its bias; swish, second bias and group norm in one pass, 16 lanes a group
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
__inline__ __device__ float sum16(float v) {
  for (int d = 8; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}
__inline__ __device__ float swish(float v) { return v / (1.f + expf(-v)); }

__global__ void __launch_bounds__(256) epilogue_k(float* __restrict__ x, const float* __restrict__ bias,
                                                  const float* __restrict__ w, const float* __restrict__ b,
                                                  int columns4, float eps, size_t total4) {
  const size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
  if (i >= total4) return;
  const int c = i % columns4;
  float4 v = reinterpret_cast<float4*>(x)[i];
  const float4 a = reinterpret_cast<const float4*>(bias)[c];
  v.x = swish(v.x) + a.x; v.y = swish(v.y) + a.y; v.z = swish(v.z) + a.z; v.w = swish(v.w) + a.w;
  const float mean = sum16((v.x + v.y) + (v.z + v.w)) * (1.f / 64.f);
  v.x -= mean; v.y -= mean; v.z -= mean; v.w -= mean;
  const float var = sum16((v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w)) * (1.f / 64.f);
  const float r = rsqrtf(var + eps);
  const float4 g = reinterpret_cast<const float4*>(w)[c], h = reinterpret_cast<const float4*>(b)[c];
  v.x = v.x * r * g.x + h.x; v.y = v.y * r * g.y + h.y; v.z = v.z * r * g.z + h.z; v.w = v.w * r * g.w + h.w;
  reinterpret_cast<float4*>(x)[i] = v;
}

void epilogue(torch::Tensor x, torch::Tensor bias, torch::Tensor w, torch::Tensor b, double eps) {
  const size_t total4 = x.numel() / 4;
  epilogue_k<<<(total4 + 255) / 256, 256>>>(x.data_ptr<float>(), bias.data_ptr<float>(), w.data_ptr<float>(),
                                            b.data_ptr<float>(), (int)(x.size(1) / 4), (float)eps, total4);
}
"""

kernels = load_inline(
    name="swish_norm_epilogue",
    cpp_sources="void epilogue(torch::Tensor x, torch::Tensor bias, torch::Tensor w, torch::Tensor b, double eps);",
    cuda_sources=CUDA_SOURCE,
    functions=["epilogue"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, num_groups, bias_shape):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        assert out_features // num_groups == 64

    def forward(self, x):
        y = self.matmul(x)
        kernels.epilogue(y, self.bias, self.group_norm.weight, self.group_norm.bias, self.group_norm.eps)
        return y
