"""Kernels whose inputs are used many times: a stencil and sums over all pairs."""

from tests.advice.good.claim import Claim
from tests.advice.good.good_kernel import GoodKernel, cuda
from tests.advice.good.label import Label
from tests.advice.good.streaming import STREAMS
from tests.task import task

DEPTHWISE = GoodKernel(
    name="depthwise",
    reference=task(
        "return F.conv2d(x, w, padding=1, groups=64)",
        x="torch.randn(16, 64, 224, 224)",
        w="torch.randn(64, 1, 3, 3)",
    ),
    source=cuda(
        "depthwise",
        r"""
struct Row { float left; float4 mid; float right; };

__device__ __forceinline__ Row row_of(const float* __restrict__ plane, int y, int x) {
  Row r = {0.f, make_float4(0.f, 0.f, 0.f, 0.f), 0.f};
  if (y >= 0 && y < 224) {
    const float* p = plane + y * 224 + x;
    r.mid = *reinterpret_cast<const float4*>(p);
    if (x > 0) r.left = p[-1];
    if (x < 220) r.right = p[4];
  }
  return r;
}

__device__ __forceinline__ void add(float4& s, const Row& r, float a, float b, float c) {
  s.x = fmaf(a, r.left, fmaf(b, r.mid.x, fmaf(c, r.mid.y, s.x)));
  s.y = fmaf(a, r.mid.x, fmaf(b, r.mid.y, fmaf(c, r.mid.z, s.y)));
  s.z = fmaf(a, r.mid.y, fmaf(b, r.mid.z, fmaf(c, r.mid.w, s.z)));
  s.w = fmaf(a, r.mid.z, fmaf(b, r.mid.w, fmaf(c, r.right, s.w)));
}

// A thread walks down eight rows of four columns and keeps three rows in registers.
// A block is 56 x 4 threads: 32 rows of a plane's full width.
__global__ void __launch_bounds__(224)
depthwise_k(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y) {
  const int column = threadIdx.x * 4, row0 = (blockIdx.x * 4 + threadIdx.y) * 8;
  const size_t base = (size_t)blockIdx.y * (224 * 224);
  const float* plane = x + base;
  const float* f = w + blockIdx.y % 64 * 9;
  float k[9];
#pragma unroll
  for (int i = 0; i < 9; ++i) k[i] = __ldg(f + i);
  Row above = row_of(plane, row0 - 1, column), here = row_of(plane, row0, column);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const Row below = row_of(plane, row0 + i + 1, column);
    float4 s = make_float4(0.f, 0.f, 0.f, 0.f);
    add(s, above, k[0], k[1], k[2]);
    add(s, here, k[3], k[4], k[5]);
    add(s, below, k[6], k[7], k[8]);
    reinterpret_cast<float4*>(y + base + (row0 + i) * 224)[threadIdx.x] =
        make_float4(s.x, s.y, s.z, s.w);
    above = here;
    here = below;
  }
}

torch::Tensor run(torch::Tensor x, torch::Tensor w) {
  auto y = torch::empty_like(x);
  const int planes = x.size(0) * x.size(1);
  depthwise_k<<<dim3(7, planes), dim3(56, 4)>>>(x.data_ptr<float>(), w.data_ptr<float>(),
                                                y.data_ptr<float>());
  return y;
}
""",
    ),
    label=Label(
        limited_by="The device's memory: one read and one write a value. A thread keeps three rows "
        "in registers, so each row of its strip is loaded once; the two neighbours' columns and "
        "the strips' borders come from L1 and L2. The left and right values cost scalar loads "
        "that hit L1.",
        right_advice="Stop, or take the left and right values from neighbouring lanes by shuffles "
        "to relieve L1. Both change little while memory is the limit.",
        must_not=STREAMS - {Claim.WIDEN_ACCESSES, Claim.LESS_ARITHMETIC}
        | {Claim.TILE_IN_REGISTERS},
        should=(Claim.STOP, Claim.USE_SHUFFLES),
    ),
)

GAUSSIAN_SUMS = GoodKernel(
    name="gaussian_sums",
    reference=task(
        """
        sums = []
        for part in queries.split(2048):
            difference = part[:, None, :] - points[None, :, :]
            sums.append((-difference.pow(2).sum(2)).exp().sum(1))
        return torch.cat(sums)
        """,
        queries="torch.randn(33792, 3)",
        points="torch.randn(16384, 3)",
    ),
    source=cuda(
        "gaussian_sums",
        r"""
// exp(-d) is 2^(-d log2 e). Coordinates scaled beforehand would save a multiplication, but lose
// digits where a difference is small.
__device__ __forceinline__ float exp_of_minus(float d) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(d * -1.4426950408889634f));
  return y;
}

// Two queries a thread; the points go through shared memory, and all lanes read the same one.
// Blocks in y share the points and leave parts.
__global__ void __launch_bounds__(128, 16)
gaussian_sums_k(const float* __restrict__ queries, const float* __restrict__ points,
                float* __restrict__ parts, int query_count, int share) {
  __shared__ float4 tile[256];
  const int t = threadIdx.x, i = blockIdx.x * 256 + t, j = i + 128;
  const float ax = queries[i * 3], ay = queries[i * 3 + 1], az = queries[i * 3 + 2];
  const float bx = queries[j * 3], by = queries[j * 3 + 1], bz = queries[j * 3 + 2];
  float a_sum = 0.f, b_sum = 0.f;
  const int begin = blockIdx.y * share;
  for (int k0 = begin; k0 < begin + share; k0 += 256) {
    __syncthreads();
#pragma unroll
    for (int u = 0; u < 2; ++u) {
      const float* p = points + (k0 + t + u * 128) * 3;
      tile[t + u * 128] = make_float4(p[0], p[1], p[2], 0.f);
    }
    __syncthreads();
    float a_part = 0.f, b_part = 0.f;
#pragma unroll 8
    for (int k = 0; k < 256; ++k) {
      const float4 p = tile[k];
      const float ux = ax - p.x, uy = ay - p.y, uz = az - p.z;
      const float vx = bx - p.x, vy = by - p.y, vz = bz - p.z;
      a_part += exp_of_minus(fmaf(uz, uz, fmaf(uy, uy, ux * ux)));
      b_part += exp_of_minus(fmaf(vz, vz, fmaf(vy, vy, vx * vx)));
    }
    a_sum += a_part;
    b_sum += b_part;
  }
  parts[(size_t)blockIdx.y * query_count + i] = a_sum;
  parts[(size_t)blockIdx.y * query_count + j] = b_sum;
}

torch::Tensor run(torch::Tensor queries, torch::Tensor points) {
  const int query_count = queries.size(0), point_count = points.size(0), shares = 16;
  auto parts = torch::empty({shares, query_count}, queries.options());
  gaussian_sums_k<<<dim3(query_count / 256, shares), 128>>>(
      queries.data_ptr<float>(), points.data_ptr<float>(), parts.data_ptr<float>(), query_count,
      point_count / shares);
  return parts.sum(0);
}
""",
    ),
    label=Label(
        limited_by="Arithmetic: eight fp32 operations and one on the special-function pipe for "
        "each pair, both pipes near their rates. Memory plays no part. The points come from "
        "shared memory as broadcasts without conflicts, one 16-byte load for two pairs.",
        right_advice="Stop, or move a part of the exponentials from the special-function pipe to "
        "the fp32 pipe by a polynomial, where that pipe has room.",
        must_not=frozenset(
            {
                Claim.COALESCE,
                Claim.MOVE_FEWER_BYTES,
                Claim.MORE_CACHE_REUSE,
                Claim.USE_SHARED_MEMORY,
                Claim.AVOID_BANK_CONFLICTS,
                Claim.USE_SHUFFLES,
                Claim.AVOID_SPILLS,
                Claim.USE_TENSOR_CORES,
                Claim.LOWER_PRECISION,
                Claim.AVOID_FP64,
                Claim.MORE_BLOCKS,
                Claim.AVOID_ATOMICS,
                Claim.AVOID_DIVERGENCE,
                Claim.USE_THE_LIBRARY,
                Claim.LEAVE_THE_LIBRARY,
                Claim.FEWER_BARRIERS,
                Claim.MORE_LOADS_IN_FLIGHT,
                Claim.WIDEN_ACCESSES,
                Claim.REPLAY_A_GRAPH,
            }
        ),
        should=(Claim.STOP, Claim.LESS_ARITHMETIC),
    ),
)

KERNELS = (DEPTHWISE, GAUSSIAN_SUMS)
