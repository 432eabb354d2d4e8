# plan: own direct convolution: a thread has a 4x4 pool window of 8 channels; sums for the norm and pooled extremes leave it, never the 0.5 GB
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
constexpr int IC = 8, OC = 64, H = 128, W = 128, OUT = 126, POOLED = 31, STRIPS = 32;
constexpr int PITCH = 132, WP = 36, HALF = 32;

// A block: one strip of four output rows, 32 channels. A warp: 8 channels. A lane: one window of 4x4.
__global__ void __launch_bounds__(128, 2) conv_k(const float* __restrict__ x, const float* __restrict__ weight,
                                                 const float* __restrict__ bias, const float* __restrict__ gamma,
                                                 const float* __restrict__ scale, float* __restrict__ pooled,
                                                 float2* __restrict__ sums) {
  __shared__ __align__(16) float tile[IC][6][PITCH];
  __shared__ __align__(16) float ws[IC * 9][WP];
  const int t = threadIdx.x, lane = t & 31, warp = t >> 5;
  const int half = blockIdx.x, strip = blockIdx.y, n = blockIdx.z;
  for (int i = t; i < IC * 9 * HALF; i += 128) ws[i % (IC * 9)][i / (IC * 9)] = weight[half * HALF * IC * 9 + i];
  for (int i = t; i < IC * 6 * 32; i += 128) {
    const int c = i / 192, r = i / 32 % 6, q = i % 32, y = strip * 4 + r;
    float4 v = make_float4(0.f, 0.f, 0.f, 0.f);
    if (y < H) v = *(const float4*)(x + (((size_t)n * IC + c) * H + y) * W + q * 4);
    *(float4*)&tile[c][r][q * 4] = v;
  }
  if (t < IC * 6) *(float4*)&tile[t / 6][t % 6][128] = make_float4(0.f, 0.f, 0.f, 0.f);
  __syncthreads();
  const int oc = half * HALF + warp * 8;
  float acc[8][16];
#pragma unroll
  for (int o = 0; o < 8; ++o) {
    const float start = bias[oc + o];
#pragma unroll
    for (int p = 0; p < 16; ++p) acc[o][p] = start;
  }
#pragma unroll 1
  for (int c = 0; c < IC; ++c) {
    float in[6][6];
#pragma unroll
    for (int r = 0; r < 6; ++r) {
      const float4 a = *(const float4*)&tile[c][r][lane * 4];
      const float2 b = *(const float2*)&tile[c][r][lane * 4 + 4];
      in[r][0] = a.x; in[r][1] = a.y; in[r][2] = a.z; in[r][3] = a.w; in[r][4] = b.x; in[r][5] = b.y;
    }
#pragma unroll
    for (int k = 0; k < 9; ++k) {
      float w[8];
      *(float4*)w = *(const float4*)&ws[c * 9 + k][warp * 8];
      *(float4*)(w + 4) = *(const float4*)&ws[c * 9 + k][warp * 8 + 4];
#pragma unroll
      for (int o = 0; o < 8; ++o)
#pragma unroll
        for (int p = 0; p < 16; ++p) acc[o][p] = fmaf(in[p / 4 + k / 3][p % 4 + k % 3], w[o], acc[o][p]);
    }
  }
  const int rows = min(4, OUT - strip * 4), columns = min(4, OUT - lane * 4);
#pragma unroll
  for (int g = 0; g < 2; ++g) {
    float s = 0.f, q = 0.f;
#pragma unroll
    for (int o = 4 * g; o < 4 * g + 4; ++o)
#pragma unroll
      for (int p = 0; p < 16; ++p)
        if (p / 4 < rows && p % 4 < columns) { s += acc[o][p]; q = fmaf(acc[o][p], acc[o][p], q); }
    for (int d = 16; d > 0; d /= 2) {
      s += __shfl_xor_sync(0xffffffffu, s, d);
      q += __shfl_xor_sync(0xffffffffu, q, d);
    }
    if (lane == 0) sums[((size_t)n * (OC / 4) + oc / 4 + g) * STRIPS + strip] = make_float2(s, q);
  }
  if (strip >= POOLED || lane >= POOLED) return;
#pragma unroll
  for (int o = 0; o < 8; ++o) {
    // The norm multiplies by gamma and scale: where these turn the order round, the least value counts.
    const bool up = gamma[oc + o] * scale[oc + o] >= 0.f;
    float m = acc[o][0];
#pragma unroll
    for (int p = 1; p < 16; ++p) m = up ? fmaxf(m, acc[o][p]) : fminf(m, acc[o][p]);
    pooled[(((size_t)n * OC + oc + o) * POOLED + strip) * POOLED + lane] = m;
  }
}

__global__ void __launch_bounds__(256) finish_k(float* __restrict__ pooled, const float2* __restrict__ sums,
                                                const float* __restrict__ gamma, const float* __restrict__ beta,
                                                const float* __restrict__ scale, float eps, float low, float high) {
  const int plane = blockIdx.x, c = plane % OC, t = threadIdx.x;
  const float2 part = sums[(size_t)(plane / 4) * STRIPS + (t & 31)];
  double s = part.x, q = part.y;
  for (int d = 16; d > 0; d /= 2) {
    s += __shfl_xor_sync(0xffffffffu, s, d);
    q += __shfl_xor_sync(0xffffffffu, q, d);
  }
  const double count = 4.0 * OUT * OUT, mean = s / count, var = q / count - mean * mean;
  const double a = gamma[c] / sqrt(var + eps);
  const float2 f = make_float2((float)(a * scale[c]), (float)((beta[c] - mean * a) * scale[c]));
  float* at = pooled + (size_t)plane * POOLED * POOLED;
  for (int i = t; i < POOLED * POOLED; i += 256) at[i] = fminf(fmaxf(fmaf(f.x, at[i], f.y), low), high);
}

torch::Tensor conv_norm_pool(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, torch::Tensor gamma,
                             torch::Tensor beta, torch::Tensor scale, double eps, double low, double high) {
  const int N = x.size(0);
  TORCH_CHECK(x.size(1) == IC && x.size(2) == H && x.size(3) == W && weight.size(0) == OC, "written for these sizes");
  auto pooled = torch::empty({N, OC, POOLED, POOLED}, x.options());
  auto sums = torch::empty({N * (OC / 4) * STRIPS, 2}, x.options());
  float2* s = reinterpret_cast<float2*>(sums.data_ptr<float>());
  conv_k<<<dim3(OC / HALF, STRIPS, N), 128>>>(x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(),
                                              gamma.data_ptr<float>(), scale.data_ptr<float>(), pooled.data_ptr<float>(), s);
  finish_k<<<N * OC, 256>>>(pooled.data_ptr<float>(), s, gamma.data_ptr<float>(), beta.data_ptr<float>(),
                            scale.data_ptr<float>(), (float)eps, (float)low, (float)high);
  return pooled;
}
"""

kernels = load_inline(
    name="conv_norm_pool",
    cpp_sources="torch::Tensor conv_norm_pool(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, torch::Tensor gamma, "
    "torch::Tensor beta, torch::Tensor scale, double eps, double low, double high);",
    cuda_sources=CUDA_SOURCE,
    functions=["conv_norm_pool"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, num_groups, scale_shape, maxpool_kernel_size, clamp_min, clamp_max):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.group_norm = nn.GroupNorm(num_groups, out_channels)
        self.scale = nn.Parameter(torch.ones(scale_shape))
        self.limits = (clamp_min, clamp_max)
        assert maxpool_kernel_size == 4 and kernel_size == 3 and out_channels == 4 * num_groups

    def forward(self, x):
        conv, norm = self.conv, self.group_norm
        return kernels.conv_norm_pool(x.contiguous(), conv.weight, conv.bias, norm.weight, norm.bias, self.scale, norm.eps, *self.limits)
