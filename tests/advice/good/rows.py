"""Kernels that reduce along rows: what a row needs twice stays in registers."""

from tests.advice.good.claim import Claim
from tests.advice.good.good_kernel import GoodKernel, cuda
from tests.advice.good.label import Label
from tests.advice.good.streaming import STREAMS
from tests.task import task

_STOP = "Stop: each byte crosses the memory's pins once; only a few percent of tuning are left."
_ROWS = STREAMS | {Claim.USE_SHUFFLES, Claim.MORE_LOADS_IN_FLIGHT}

SOFTMAX_BLOCK = GoodKernel(
    name="softmax_block",
    reference=task("return torch.softmax(x, dim=1)", x="torch.randn(16384, 4096)"),
    source=cuda(
        "softmax_block",
        r"""
template <bool MAX>
__device__ __forceinline__ float over_block(float v, float* parts) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, v, d);
    v = MAX ? fmaxf(v, other) : v + other;
  }
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
  __syncthreads();
  v = parts[threadIdx.x % 8];
#pragma unroll
  for (int d = 4; d > 0; d /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, v, d);
    v = MAX ? fmaxf(v, other) : v + other;
  }
  return v;
}

// One block a row of 4096: sixteen values a thread, in registers from the load to the store.
__global__ void __launch_bounds__(256)
softmax_k(const float4* __restrict__ x, float4* __restrict__ y) {
  __shared__ float maxima[8], sums[8];
  const size_t at = (size_t)blockIdx.x * 1024 + threadIdx.x;
  float4 v[4];
#pragma unroll
  for (int u = 0; u < 4; ++u) v[u] = x[at + u * 256];
  float top = -INFINITY;
#pragma unroll
  for (int u = 0; u < 4; ++u)
    top = fmaxf(top, fmaxf(fmaxf(v[u].x, v[u].y), fmaxf(v[u].z, v[u].w)));
  top = over_block<true>(top, maxima);
  float sum = 0.f;
#pragma unroll
  for (int u = 0; u < 4; ++u) {
    v[u] = make_float4(expf(v[u].x - top), expf(v[u].y - top), expf(v[u].z - top),
                       expf(v[u].w - top));
    sum += (v[u].x + v[u].y) + (v[u].z + v[u].w);
  }
  const float scale = 1.f / over_block<false>(sum, sums);
#pragma unroll
  for (int u = 0; u < 4; ++u)
    y[at + u * 256] =
        make_float4(v[u].x * scale, v[u].y * scale, v[u].z * scale, v[u].w * scale);
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  softmax_k<<<x.size(0), 256>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()),
                                reinterpret_cast<float4*>(y.data_ptr<float>()));
  return y;
}
""",
    ),
    label=Label(
        limited_by="The device's memory: one read and one write a value. A row lies in registers "
        "between them. The two barriers a row are covered by the other blocks of the SM.",
        right_advice=_STOP,
        must_not=_ROWS - {Claim.LESS_ARITHMETIC, Claim.FEWER_BARRIERS},
        should=(Claim.STOP,),
    ),
)

SOFTMAX_WARP = GoodKernel(
    name="softmax_warp",
    reference=task("return torch.softmax(x, dim=1)", x="torch.randn(131072, 512)"),
    source=cuda(
        "softmax_warp",
        r"""
// One warp a row of 512: sixteen values a lane, no shared memory and no barrier.
__global__ void __launch_bounds__(256)
softmax_k(const float4* __restrict__ x, float4* __restrict__ y) {
  const size_t row = (size_t)blockIdx.x * 8 + threadIdx.x / 32;
  const size_t at = row * 128 + threadIdx.x % 32;
  float4 v[4];
#pragma unroll
  for (int u = 0; u < 4; ++u) v[u] = x[at + u * 32];
  float top = -INFINITY;
#pragma unroll
  for (int u = 0; u < 4; ++u)
    top = fmaxf(top, fmaxf(fmaxf(v[u].x, v[u].y), fmaxf(v[u].z, v[u].w)));
#pragma unroll
  for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
  float sum = 0.f;
#pragma unroll
  for (int u = 0; u < 4; ++u) {
    v[u] = make_float4(expf(v[u].x - top), expf(v[u].y - top), expf(v[u].z - top),
                       expf(v[u].w - top));
    sum += (v[u].x + v[u].y) + (v[u].z + v[u].w);
  }
#pragma unroll
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  const float scale = 1.f / sum;
#pragma unroll
  for (int u = 0; u < 4; ++u)
    y[at + u * 32] = make_float4(v[u].x * scale, v[u].y * scale, v[u].z * scale, v[u].w * scale);
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  softmax_k<<<x.size(0) / 8, 256>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()),
                                    reinterpret_cast<float4*>(y.data_ptr<float>()));
  return y;
}
""",
    ),
    label=Label(
        limited_by="The device's memory: one read and one write a value. The reductions are ten "
        "shuffles a row, and there is neither shared memory nor a barrier.",
        right_advice=_STOP,
        must_not=_ROWS - {Claim.LESS_ARITHMETIC},
        should=(Claim.STOP,),
    ),
)

LAYER_NORM = GoodKernel(
    name="layer_norm",
    reference=task(
        "return F.layer_norm(x, (2048,), w, b)",
        x="torch.randn(32768, 2048)",
        w="torch.randn(2048)",
        b="torch.randn(2048)",
    ),
    source=cuda(
        "layer_norm",
        r"""
__device__ __forceinline__ float block_sum(float v, float* parts) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
  __syncthreads();
  v = parts[threadIdx.x % 8];
#pragma unroll
  for (int d = 4; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

// One block a row of 2048. The variance is taken of the differences, from registers.
__global__ void __launch_bounds__(256)
layer_norm_k(const float4* __restrict__ x, const float4* __restrict__ w,
             const float4* __restrict__ b, float4* __restrict__ y) {
  __shared__ float sums[8], squares[8];
  const int t = threadIdx.x;
  const size_t at = (size_t)blockIdx.x * 512 + t;
  float4 v0 = x[at], v1 = x[at + 256];
  const float4 w0 = w[t], w1 = w[t + 256], b0 = b[t], b1 = b[t + 256];
  const float mean = block_sum((v0.x + v0.y) + (v0.z + v0.w) + ((v1.x + v1.y) + (v1.z + v1.w)),
                               sums) * (1.f / 2048.f);
  v0.x -= mean, v0.y -= mean, v0.z -= mean, v0.w -= mean;
  v1.x -= mean, v1.y -= mean, v1.z -= mean, v1.w -= mean;
  const float variance = block_sum((v0.x * v0.x + v0.y * v0.y) + (v0.z * v0.z + v0.w * v0.w) +
                                   ((v1.x * v1.x + v1.y * v1.y) + (v1.z * v1.z + v1.w * v1.w)),
                                   squares) * (1.f / 2048.f);
  const float r = rsqrtf(variance + 1e-5f);
  y[at] = make_float4(v0.x * r * w0.x + b0.x, v0.y * r * w0.y + b0.y, v0.z * r * w0.z + b0.z,
                      v0.w * r * w0.w + b0.w);
  y[at + 256] = make_float4(v1.x * r * w1.x + b1.x, v1.y * r * w1.y + b1.y,
                            v1.z * r * w1.z + b1.z, v1.w * r * w1.w + b1.w);
}

torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
  auto y = torch::empty_like(x);
  layer_norm_k<<<x.size(0), 256>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()),
                                   reinterpret_cast<const float4*>(w.data_ptr<float>()),
                                   reinterpret_cast<const float4*>(b.data_ptr<float>()),
                                   reinterpret_cast<float4*>(y.data_ptr<float>()));
  return y;
}
""",
    ),
    label=Label(
        limited_by="The device's memory: one read and one write a value. Only two 16-byte loads a "
        "thread come from the device's memory, and two barriers follow, so a little latency may "
        "show. Weight and bias come from caches.",
        right_advice="Stop, or give each SM a bit more to wait for: one warp a row without "
        "barriers, or two rows a block.",
        must_not=_ROWS - {Claim.MORE_LOADS_IN_FLIGHT, Claim.FEWER_BARRIERS},
        should=(Claim.STOP, Claim.MORE_LOADS_IN_FLIGHT, Claim.FEWER_BARRIERS),
    ),
)

RMS_NORM = GoodKernel(
    name="rms_norm",
    reference=task(
        "return x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-6) * w",
        x="torch.randn(65536, 1024)",
        w="torch.randn(1024)",
    ),
    source=cuda(
        "rms_norm",
        r"""
// One warp a row of 1024: thirty-two values a lane, eight loads at once.
__global__ void __launch_bounds__(256)
rms_norm_k(const float4* __restrict__ x, const float4* __restrict__ w, float4* __restrict__ y) {
  const size_t row = (size_t)blockIdx.x * 8 + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  float4 v[8];
#pragma unroll
  for (int u = 0; u < 8; ++u) v[u] = x[row * 256 + lane + u * 32];
  float sum = 0.f;
#pragma unroll
  for (int u = 0; u < 8; ++u)
    sum += (v[u].x * v[u].x + v[u].y * v[u].y) + (v[u].z * v[u].z + v[u].w * v[u].w);
#pragma unroll
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  const float r = rsqrtf(sum * (1.f / 1024.f) + 1e-6f);
#pragma unroll
  for (int u = 0; u < 8; ++u) {
    const float4 f = w[lane + u * 32];
    y[row * 256 + lane + u * 32] =
        make_float4(v[u].x * r * f.x, v[u].y * r * f.y, v[u].z * r * f.z, v[u].w * r * f.w);
  }
}

torch::Tensor run(torch::Tensor x, torch::Tensor w) {
  auto y = torch::empty_like(x);
  rms_norm_k<<<x.size(0) / 8, 256>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()),
                                     reinterpret_cast<const float4*>(w.data_ptr<float>()),
                                     reinterpret_cast<float4*>(y.data_ptr<float>()));
  return y;
}
""",
    ),
    label=Label(
        limited_by="The device's memory: one read and one write a value, eight 16-byte loads in "
        "flight a lane, no barrier. The weights come from L1.",
        right_advice=_STOP,
        must_not=_ROWS,
        should=(Claim.STOP,),
    ),
)

PLANE_MEAN = GoodKernel(
    name="plane_mean",
    reference=task("return x.mean(dim=(2, 3))", x="torch.randn(64, 512, 56, 56)"),
    source=cuda(
        "plane_mean",
        r"""
// One warp a plane of 784 times four values: 24 full rounds, then half a warp.
__global__ void __launch_bounds__(256)
plane_mean_k(const float4* __restrict__ x, float* __restrict__ y, int planes) {
  const int plane = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (plane >= planes) return;
  const float4* in = x + (size_t)plane * 784 + lane;
  float sums[8] = {};
#pragma unroll
  for (int k = 0; k < 24; k += 8) {
    float4 v[8];
#pragma unroll
    for (int u = 0; u < 8; ++u) v[u] = __ldcs(in + (k + u) * 32);
#pragma unroll
    for (int u = 0; u < 8; ++u) sums[u] += (v[u].x + v[u].y) + (v[u].z + v[u].w);
  }
  if (lane < 16) {
    const float4 v = __ldcs(in + 768);
    sums[0] += (v.x + v.y) + (v.z + v.w);
  }
  float sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
              ((sums[4] + sums[5]) + (sums[6] + sums[7]));
#pragma unroll
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (lane == 0) y[plane] = sum / 3136.f;
}

torch::Tensor run(torch::Tensor x) {
  const int planes = x.size(0) * x.size(1);
  auto y = torch::empty({x.size(0), x.size(1)}, x.options());
  plane_mean_k<<<(planes + 7) / 8, 256>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()),
                                          y.data_ptr<float>(), planes);
  return y;
}
""",
    ),
    label=Label(
        limited_by="The device's memory: every value is read once, and next to nothing is "
        "written. Eight 16-byte loads a lane are in flight; a plane's sum costs five shuffles.",
        right_advice=_STOP,
        must_not=_ROWS | {Claim.SHORTEN_DEPENDENCIES},
        should=(Claim.STOP,),
    ),
)

KERNELS = (SOFTMAX_BLOCK, SOFTMAX_WARP, LAYER_NORM, RMS_NORM, PLANE_MEAN)
