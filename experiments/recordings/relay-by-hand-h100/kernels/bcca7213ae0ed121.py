# plan: cuDNN convolution; one kernel for mean and variance of a group, one for norm, scale, max pool and clamp
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
__inline__ __device__ double block_sum(double v, double* parts) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  if ((threadIdx.x & 31) == 0) parts[threadIdx.x >> 5] = v;
  __syncthreads();
  double sum = 0.0;
  for (int i = 0; i < (int)(blockDim.x >> 5); ++i) sum += parts[i];
  __syncthreads();
  return sum;
}

// One block a (sample, group): the group's channels lie one after the other.
__global__ void __launch_bounds__(512) stats_k(const float* __restrict__ x, float* __restrict__ stats, int n, float eps) {
  __shared__ double parts[16];
  const float4* in = reinterpret_cast<const float4*>(x + (size_t)blockIdx.x * n);
  float s = 0.f, q = 0.f;
#pragma unroll 4
  for (int i = threadIdx.x; i < n / 4; i += 512) {
    const float4 v = in[i];
    s += (v.x + v.y) + (v.z + v.w);
    q += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
  }
  const double sum = block_sum(s, parts), squares = block_sum(q, parts);
  if (threadIdx.x == 0) {
    const double mean = sum / n, var = squares / n - mean * mean;
    stats[2 * blockIdx.x] = (float)mean;
    stats[2 * blockIdx.x + 1] = (float)(1.0 / sqrt(var + eps));
  }
}

__global__ void __launch_bounds__(128) pool_k(const float* __restrict__ x, const float* __restrict__ stats,
                                              const float* __restrict__ w, const float* __restrict__ b,
                                              const float* __restrict__ scale, float* __restrict__ y,
                                              int C, int per_group, int H, int W, int OH, int OW, float low, float high) {
  const int plane = blockIdx.y, c = plane % C;
  const int group = plane / per_group;
  const float mean = stats[2 * group], r = stats[2 * group + 1];
  const float a = r * w[c] * scale[c], d = (b[c] - mean * r * w[c]) * scale[c];
  const int o = blockIdx.x * 128 + threadIdx.x;
  if (o >= OH * OW) return;
  const int oy = o / OW, ox = o % OW;
  const float* in = x + (size_t)plane * H * W + (size_t)(oy * 4) * W + ox * 4;
  float m = -INFINITY;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 p = *(const float2*)(in + (size_t)i * W), q = *(const float2*)(in + (size_t)i * W + 2);
    m = fmaxf(m, fmaxf(fmaxf(a * p.x + d, a * p.y + d), fmaxf(a * q.x + d, a * q.y + d)));
  }
  y[(size_t)plane * OH * OW + o] = fminf(fmaxf(m, low), high);
}

torch::Tensor norm_pool(torch::Tensor x, torch::Tensor w, torch::Tensor b, torch::Tensor scale, int64_t groups,
                        double eps, double low, double high) {
  const int N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3), OH = H / 4, OW = W / 4;
  auto stats = torch::empty({N * groups, 2}, x.options());
  auto y = torch::empty({N, C, OH, OW}, x.options());
  const int per_group = C / groups;
  stats_k<<<N * groups, 512>>>(x.data_ptr<float>(), stats.data_ptr<float>(), per_group * H * W, (float)eps);
  pool_k<<<dim3((OH * OW + 127) / 128, N * C), 128>>>(x.data_ptr<float>(), stats.data_ptr<float>(), w.data_ptr<float>(),
      b.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(), C, per_group, H, W, OH, OW, (float)low, (float)high);
  return y;
}
"""

kernels = load_inline(
    name="norm_pool",
    cpp_sources="torch::Tensor norm_pool(torch::Tensor x, torch::Tensor w, torch::Tensor b, torch::Tensor scale, "
    "int64_t groups, double eps, double low, double high);",
    cuda_sources=CUDA_SOURCE,
    functions=["norm_pool"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, num_groups, scale_shape, maxpool_kernel_size, clamp_min, clamp_max):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.group_norm = nn.GroupNorm(num_groups, out_channels)
        self.scale = nn.Parameter(torch.ones(scale_shape))
        self.limits = (clamp_min, clamp_max)
        assert maxpool_kernel_size == 4

    def forward(self, x):
        norm = self.group_norm
        return kernels.norm_pool(self.conv(x), norm.weight, norm.bias, self.scale, norm.num_groups, norm.eps, *self.limits)
