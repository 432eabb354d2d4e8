"""Elementwise kernels and the like: each byte is read or written once, 16 bytes an access."""

from evaluator.settings import Precision
from tests.advice.good.claim import Claim
from tests.advice.good.good_kernel import GoodKernel, cuda
from tests.advice.good.label import Label
from tests.task import task

_LIMIT = (
    "The device's memory: every input byte is read once and every output byte is written once, "
    "in coalesced accesses of 16 bytes."
)
_STOP = "Stop: nothing is left but a few percent from block sizes, unrolling or cache hints."
STREAMS = frozenset({
    Claim.COALESCE, Claim.WIDEN_ACCESSES, Claim.MOVE_FEWER_BYTES, Claim.MORE_CACHE_REUSE,
    Claim.USE_SHARED_MEMORY, Claim.AVOID_BANK_CONFLICTS, Claim.AVOID_SPILLS,
    Claim.USE_TENSOR_CORES, Claim.LOWER_PRECISION, Claim.LESS_ARITHMETIC, Claim.AVOID_FP64,
    Claim.LOWER_PIPE_USE, Claim.MORE_BLOCKS, Claim.FEWER_BARRIERS, Claim.AVOID_ATOMICS,
    Claim.FUSE, Claim.FEWER_LAUNCHES, Claim.REPLAY_A_GRAPH,
    Claim.USE_THE_LIBRARY, Claim.LEAVE_THE_LIBRARY,
})  # fmt: skip
"""Wrong for whatever only streams well, in one launch, in the type that the task asks for."""

RESIDUAL_RELU = GoodKernel(
    name="residual_relu",
    reference=task(
        "return torch.relu(x + r)", x="torch.randn(4096, 8192)", r="torch.randn(4096, 8192)"
    ),
    source=cuda(
        "residual_relu",
        r"""
__global__ void __launch_bounds__(256)
residual_relu_k(const float4* __restrict__ x, const float4* __restrict__ r,
                float4* __restrict__ y, int n4) {
  const int step = gridDim.x * blockDim.x;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (; i + 3 * step < n4; i += 4 * step) {
    float4 a[4], b[4];
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      a[u] = __ldcs(x + i + u * step);
      b[u] = __ldcs(r + i + u * step);
    }
#pragma unroll
    for (int u = 0; u < 4; ++u)
      __stcs(y + i + u * step,
             make_float4(fmaxf(a[u].x + b[u].x, 0.f), fmaxf(a[u].y + b[u].y, 0.f),
                         fmaxf(a[u].z + b[u].z, 0.f), fmaxf(a[u].w + b[u].w, 0.f)));
  }
  for (; i < n4; i += step) {
    const float4 a = x[i], b = r[i];
    y[i] = make_float4(fmaxf(a.x + b.x, 0.f), fmaxf(a.y + b.y, 0.f), fmaxf(a.z + b.z, 0.f),
                       fmaxf(a.w + b.w, 0.f));
  }
}

torch::Tensor run(torch::Tensor x, torch::Tensor r) {
  auto y = torch::empty_like(x);
  residual_relu_k<<<132 * 8, 256>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()),
                                    reinterpret_cast<const float4*>(r.data_ptr<float>()),
                                    reinterpret_cast<float4*>(y.data_ptr<float>()),
                                    (int)(x.numel() / 4));
  return y;
}
""",
    ),
    label=Label(
        limited_by=_LIMIT + " Eight independent loads a thread are in flight, in one wave.",
        right_advice=_STOP,
        must_not=STREAMS | {Claim.MORE_LOADS_IN_FLIGHT},
        should=(Claim.STOP,),
    ),
)

BIAS_GELU = GoodKernel(
    name="bias_gelu",
    reference=task(
        "return F.gelu(x + bias)", x="torch.randn(8192, 4096)", bias="torch.randn(4096)"
    ),
    source=cuda(
        "bias_gelu",
        r"""
__device__ __forceinline__ float gelu(float v) {
  return 0.5f * v * (1.f + erff(v * 0.70710678118654752f));
}

// A block owns 1024 columns of eight rows, so each thread loads its four biases once.
__global__ void __launch_bounds__(256)
bias_gelu_k(const float4* __restrict__ x, const float4* __restrict__ bias,
            float4* __restrict__ y, int columns4) {
  const int column = blockIdx.x * 256 + threadIdx.x;
  const size_t at = (size_t)blockIdx.y * 8 * columns4 + column;
  const float4 b = bias[column];
  float4 v[8];
#pragma unroll
  for (int u = 0; u < 8; ++u) v[u] = __ldcs(x + at + (size_t)u * columns4);
#pragma unroll
  for (int u = 0; u < 8; ++u)
    __stcs(y + at + (size_t)u * columns4,
           make_float4(gelu(v[u].x + b.x), gelu(v[u].y + b.y), gelu(v[u].z + b.z),
                       gelu(v[u].w + b.w)));
}

torch::Tensor run(torch::Tensor x, torch::Tensor bias) {
  const int rows = x.size(0), columns = x.size(1);
  auto y = torch::empty_like(x);
  bias_gelu_k<<<dim3(columns / 1024, rows / 8), 256>>>(
      reinterpret_cast<const float4*>(x.data_ptr<float>()),
      reinterpret_cast<const float4*>(bias.data_ptr<float>()),
      reinterpret_cast<float4*>(y.data_ptr<float>()), columns / 4);
  return y;
}
""",
    ),
    label=Label(
        limited_by=_LIMIT + " The exact GELU's erff costs about thirty instructions a value, "
        "which hides under the transfers. The bias comes from a cache.",
        right_advice=_STOP,
        must_not=STREAMS - {Claim.LESS_ARITHMETIC} | {Claim.MORE_LOADS_IN_FLIGHT},
        should=(Claim.STOP,),
    ),
)

SWIGLU = GoodKernel(
    name="swiglu",
    reference=task(
        "gate, up = x.chunk(2, dim=1)\nreturn F.silu(gate) * up", x="torch.randn(4096, 16384)"
    ),
    source=cuda(
        "swiglu",
        r"""
__device__ __forceinline__ float gated(float g, float u) { return g / (1.f + expf(-g)) * u; }

__global__ void __launch_bounds__(256)
swiglu_k(const float4* __restrict__ x, float4* __restrict__ y, int half4) {
  const float4* gate = x + (size_t)blockIdx.y * 2 * half4;
  const int column = blockIdx.x * 512 + threadIdx.x;
  const float4 g0 = gate[column], g1 = gate[column + 256];
  const float4 u0 = gate[half4 + column], u1 = gate[half4 + column + 256];
  float4* out = y + (size_t)blockIdx.y * half4 + column;
  out[0] = make_float4(gated(g0.x, u0.x), gated(g0.y, u0.y), gated(g0.z, u0.z),
                       gated(g0.w, u0.w));
  out[256] = make_float4(gated(g1.x, u1.x), gated(g1.y, u1.y), gated(g1.z, u1.z),
                         gated(g1.w, u1.w));
}

torch::Tensor run(torch::Tensor x) {
  const int rows = x.size(0), half = x.size(1) / 2;
  auto y = torch::empty({rows, half}, x.options());
  swiglu_k<<<dim3(half / 2048, rows), 256>>>(
      reinterpret_cast<const float4*>(x.data_ptr<float>()),
      reinterpret_cast<float4*>(y.data_ptr<float>()), half / 4);
  return y;
}
""",
    ),
    label=Label(
        limited_by=_LIMIT + " Four independent loads a thread at full occupancy are enough.",
        right_advice=_STOP,
        must_not=STREAMS - {Claim.LESS_ARITHMETIC} | {Claim.MORE_LOADS_IN_FLIGHT},
        should=(Claim.STOP,),
    ),
)

MAX_POOL = GoodKernel(
    name="max_pool",
    reference=task("return F.max_pool2d(x, 2)", x="torch.randn(32, 64, 224, 224)"),
    source=cuda(
        "max_pool",
        r"""
__device__ __forceinline__ float larger(float a, float b) {
  return isnan(a) || a > b ? a : b;  // NaN stays, as in PyTorch
}

// A thread reads eight columns of two rows and writes four results.
__global__ void __launch_bounds__(256)
max_pool_k(const float4* __restrict__ x, float4* __restrict__ y, int out4, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int row = i / out4, column = i - row * out4;
  const float4* top = x + (size_t)row * 4 * out4 + 2 * column;
  const float4* low = top + 2 * out4;
  const float4 a = top[0], b = top[1], c = low[0], d = low[1];
  y[i] = make_float4(larger(larger(a.x, a.y), larger(c.x, c.y)),
                     larger(larger(a.z, a.w), larger(c.z, c.w)),
                     larger(larger(b.x, b.y), larger(d.x, d.y)),
                     larger(larger(b.z, b.w), larger(d.z, d.w)));
}

torch::Tensor run(torch::Tensor x) {
  const int height = x.size(2) / 2, width = x.size(3) / 2;
  auto y = torch::empty({x.size(0), x.size(1), height, width}, x.options());
  const int n = y.numel() / 4;
  max_pool_k<<<(n + 255) / 256, 256>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()),
                                       reinterpret_cast<float4*>(y.data_ptr<float>()), width / 4,
                                       n);
  return y;
}
""",
    ),
    label=Label(
        limited_by="The device's memory: each value is read once, by 16-byte loads. Two loads "
        "of a thread lie side by side, so a warp's load covers every other 16 bytes; both "
        "halves of each sector are used and the second comes from L1.",
        right_advice="Stop, or at most let a warp's loads be contiguous: the bytes are the fewest.",
        must_not=STREAMS - {Claim.COALESCE, Claim.MORE_CACHE_REUSE} | {Claim.MORE_LOADS_IN_FLIGHT},
        should=(Claim.STOP,),
    ),
)

HALF_SCALE_SHIFT = GoodKernel(
    name="half_scale_shift",
    reference=task(
        "return x * scale + shift",
        x="torch.randn(8192, 8192)",
        scale="torch.randn(8192)",
        shift="torch.randn(8192)",
    ),
    source=cuda(
        "half_scale_shift",
        r"""
#include <cuda_fp16.h>

__device__ __forceinline__ unsigned scaled(unsigned x, unsigned scale, unsigned shift) {
  const float2 v = __half22float2(reinterpret_cast<const __half2&>(x));
  const float2 f = __half22float2(reinterpret_cast<const __half2&>(scale));
  const float2 g = __half22float2(reinterpret_cast<const __half2&>(shift));
  const __half2 y = __floats2half2_rn(fmaf(v.x, f.x, g.x), fmaf(v.y, f.y, g.y));
  return reinterpret_cast<const unsigned&>(y);
}

// Eight halves are one 16-byte access. A block owns 2048 columns of four rows.
__global__ void __launch_bounds__(256)
scale_shift_k(const uint4* __restrict__ x, const uint4* __restrict__ scale,
              const uint4* __restrict__ shift, uint4* __restrict__ y, int columns8) {
  const int column = blockIdx.x * 256 + threadIdx.x;
  const size_t at = (size_t)blockIdx.y * 4 * columns8 + column;
  uint4 in[4];
#pragma unroll
  for (int u = 0; u < 4; ++u) in[u] = x[at + (size_t)u * columns8];
  const uint4 s = scale[column], b = shift[column];
#pragma unroll
  for (int u = 0; u < 4; ++u)
    y[at + (size_t)u * columns8] =
        make_uint4(scaled(in[u].x, s.x, b.x), scaled(in[u].y, s.y, b.y),
                   scaled(in[u].z, s.z, b.z), scaled(in[u].w, s.w, b.w));
}

torch::Tensor run(torch::Tensor x, torch::Tensor scale, torch::Tensor shift) {
  const int rows = x.size(0), columns = x.size(1);
  auto y = torch::empty_like(x);
  scale_shift_k<<<dim3(columns / 2048, rows / 4), 256>>>(
      reinterpret_cast<const uint4*>(x.data_ptr()),
      reinterpret_cast<const uint4*>(scale.data_ptr()),
      reinterpret_cast<const uint4*>(shift.data_ptr()), reinterpret_cast<uint4*>(y.data_ptr()),
      columns / 8);
  return y;
}
""",
    ),
    precision=Precision.FP16,
    label=Label(
        limited_by=_LIMIT + " The task's type is fp16 already; eight values are one access.",
        right_advice=_STOP,
        must_not=STREAMS | {Claim.MORE_LOADS_IN_FLIGHT},
        should=(Claim.STOP,),
    ),
)

KERNELS = (RESIDUAL_RELU, BIAS_GELU, SWIGLU, MAX_POOL, HALF_SCALE_SHIFT)
