"""Kernels in which threads exchange data across rows, columns or the whole tensor."""

from tests.advice.good.claim import Claim
from tests.advice.good.good_kernel import GoodKernel, cuda
from tests.advice.good.label import Label
from tests.advice.good.streaming import STREAMS
from tests.task import task

TRANSPOSE = GoodKernel(
    name="transpose",
    reference=task("return x.t().contiguous()", x="torch.randn(8192, 8192)"),
    source=cuda(
        "transpose",
        r"""
// A tile of 32 x 32 through padded shared memory; eight warps move four rows each.
__global__ void __launch_bounds__(256)
transpose_k(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
  __shared__ float tile[32][33];
  const int t = threadIdx.x % 32, k = threadIdx.x / 32;
  const int row0 = blockIdx.y * 32, column0 = blockIdx.x * 32;
  const float* in = x + (size_t)(row0 + k) * columns + column0 + t;
  float v[4];
#pragma unroll
  for (int u = 0; u < 4; ++u) v[u] = in[(size_t)u * 8 * columns];
#pragma unroll
  for (int u = 0; u < 4; ++u) tile[k + u * 8][t] = v[u];
  __syncthreads();
  float* out = y + (size_t)(column0 + k) * rows + row0 + t;
#pragma unroll
  for (int u = 0; u < 4; ++u) out[(size_t)u * 8 * rows] = tile[t][k + u * 8];
}

torch::Tensor run(torch::Tensor x) {
  const int rows = x.size(0), columns = x.size(1);
  auto y = torch::empty({columns, rows}, x.options());
  transpose_k<<<dim3(columns / 32, rows / 32), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(),
                                                      rows, columns);
  return y;
}
""",
    ),
    label=Label(
        limited_by="The device's memory. Loads and stores both cover whole 128-byte lines, and the "
        "padded tile has no bank conflicts. All four loads of a thread come before its barrier.",
        right_advice="Stop, or try larger tiles (64 x 64, 16-byte accesses) for longer runs of "
        "bytes in a row of memory. The gain is small.",
        must_not=STREAMS - {Claim.WIDEN_ACCESSES, Claim.FEWER_BARRIERS},
        should=(Claim.STOP,),
    ),
)

COLUMN_SUM = GoodKernel(
    name="column_sum",
    reference=task("return x.sum(0)", x="torch.randn(65536, 1024)"),
    source=cuda(
        "column_sum",
        r"""
// A block sums 128 columns of its share of the rows; each of its eight warps loads whole lines.
__global__ void __launch_bounds__(256)
column_parts_k(const float4* __restrict__ x, float4* __restrict__ parts, int rows, int columns4) {
  __shared__ float4 sums[8][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int column = blockIdx.x * 32 + lane, share = rows / gridDim.y;
  const float4* in = x + ((size_t)blockIdx.y * share + warp) * columns4 + column;
  float4 s[4] = {};
  for (int row = warp; row < share; row += 32, in += (size_t)32 * columns4) {
    float4 v[4];
#pragma unroll
    for (int u = 0; u < 4; ++u) v[u] = __ldcs(in + (size_t)u * 8 * columns4);
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      s[u].x += v[u].x;
      s[u].y += v[u].y;
      s[u].z += v[u].z;
      s[u].w += v[u].w;
    }
  }
  sums[warp][lane] = make_float4((s[0].x + s[1].x) + (s[2].x + s[3].x),
                                 (s[0].y + s[1].y) + (s[2].y + s[3].y),
                                 (s[0].z + s[1].z) + (s[2].z + s[3].z),
                                 (s[0].w + s[1].w) + (s[2].w + s[3].w));
  __syncthreads();
  if (warp == 0) {
    float4 all = sums[0][lane];
#pragma unroll
    for (int k = 1; k < 8; ++k) {
      const float4 v = sums[k][lane];
      all.x += v.x;
      all.y += v.y;
      all.z += v.z;
      all.w += v.w;
    }
    parts[(size_t)blockIdx.y * columns4 + column] = all;
  }
}

__global__ void __launch_bounds__(256)
join_parts_k(const float* __restrict__ parts, float* __restrict__ y, int columns) {
  __shared__ float sums[8][33];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int column = blockIdx.x * 32 + lane;
  float sum = 0.f;
#pragma unroll
  for (int k = 0; k < 128; k += 8) sum += parts[(size_t)(k + warp) * columns + column];
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp == 0) {
#pragma unroll
    for (int k = 1; k < 8; ++k) sum += sums[k][lane];
    y[column] = sum;
  }
}

torch::Tensor run(torch::Tensor x) {
  const int rows = x.size(0), columns = x.size(1);
  auto parts = torch::empty({128, columns}, x.options());
  auto y = torch::empty({columns}, x.options());
  column_parts_k<<<dim3(columns / 128, 128), 256>>>(
      reinterpret_cast<const float4*>(x.data_ptr<float>()),
      reinterpret_cast<float4*>(parts.data_ptr<float>()), rows, columns / 4);
  join_parts_k<<<columns / 32, 256>>>(parts.data_ptr<float>(), y.data_ptr<float>(), columns);
  return y;
}
""",
    ),
    label=Label(
        limited_by="The device's memory in the first kernel: every value is read once, in whole "
        "lines and 16 bytes a lane. The second kernel adds 128 parts a column from L2 and is a "
        "few microseconds of latency.",
        right_advice="Stop. At most the second launch could go (the last block to finish adds the "
        "parts), which is a few percent.",
        must_not=STREAMS
        - {Claim.FUSE, Claim.FEWER_LAUNCHES, Claim.FEWER_BARRIERS, Claim.MORE_BLOCKS}
        | {Claim.MORE_LOADS_IN_FLIGHT, Claim.SHORTEN_DEPENDENCIES},
        should=(Claim.STOP, Claim.FEWER_LAUNCHES),
    ),
)

ROW_SCAN = GoodKernel(
    name="row_scan",
    reference=task("return torch.cumsum(x, dim=1)", x="torch.randn(16384, 4096)"),
    source=cuda(
        "row_scan",
        r"""
// One block a row of 4096. A thread holds four runs of four values; a warp scans its totals by
// shuffles, and the 32 totals of warps and runs are scanned by every warp for itself.
__global__ void __launch_bounds__(256)
row_scan_k(const float4* __restrict__ x, float4* __restrict__ y) {
  __shared__ float totals[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const size_t at = (size_t)blockIdx.x * 1024 + threadIdx.x;
  float4 v[4];
  float before[4];
#pragma unroll
  for (int u = 0; u < 4; ++u) v[u] = x[at + u * 256];
#pragma unroll
  for (int u = 0; u < 4; ++u) {
    v[u].y += v[u].x;
    v[u].z += v[u].y;
    v[u].w += v[u].z;
    float scan = v[u].w;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const float other = __shfl_up_sync(0xffffffffu, scan, d);
      if (lane >= d) scan += other;
    }
    const float previous = __shfl_up_sync(0xffffffffu, scan, 1);
    before[u] = lane == 0 ? 0.f : previous;
    if (lane == 31) totals[u * 8 + warp] = scan;
  }
  __syncthreads();
  float all = totals[lane];
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const float other = __shfl_up_sync(0xffffffffu, all, d);
    if (lane >= d) all += other;
  }
#pragma unroll
  for (int u = 0; u < 4; ++u) {
    const int mine = u * 8 + warp;
    const float earlier = __shfl_sync(0xffffffffu, all, mine == 0 ? 0 : mine - 1);
    const float base = before[u] + (mine == 0 ? 0.f : earlier);
    y[at + u * 256] =
        make_float4(base + v[u].x, base + v[u].y, base + v[u].z, base + v[u].w);
  }
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  row_scan_k<<<x.size(0), 256>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()),
                                 reinterpret_cast<float4*>(y.data_ptr<float>()));
  return y;
}
""",
    ),
    label=Label(
        limited_by="The device's memory: one read and one write a value, all four loads first. "
        "The scan itself is some thirty shuffles a thread and a single barrier, under the "
        "transfers.",
        right_advice="Stop: the row is in registers and there is one barrier.",
        must_not=STREAMS - {Claim.LESS_ARITHMETIC}
        | {Claim.USE_SHUFFLES, Claim.MORE_LOADS_IN_FLIGHT, Claim.FEWER_BARRIERS},
        should=(Claim.STOP,),
    ),
)

SQUARED_ERROR = GoodKernel(
    name="squared_error",
    reference=task(
        "return F.mse_loss(a, b)", a="torch.randn(4096, 8192)", b="torch.randn(4096, 8192)"
    ),
    source=cuda(
        "squared_error",
        r"""
__device__ __forceinline__ float block_sum(float v) {
  __shared__ float parts[8];
#pragma unroll
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
  __syncthreads();
  v = parts[threadIdx.x % 8];
#pragma unroll
  for (int d = 4; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

__global__ void __launch_bounds__(256)
error_parts_k(const float4* __restrict__ a, const float4* __restrict__ b,
              float* __restrict__ parts, int n4) {
  const int step = gridDim.x * 256;
  float s[4] = {};
  int i = blockIdx.x * 256 + threadIdx.x;
  for (; i + 3 * step < n4; i += 4 * step) {
    float4 p[4], q[4];
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      p[u] = __ldcs(a + i + u * step);
      q[u] = __ldcs(b + i + u * step);
    }
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const float x = p[u].x - q[u].x, y = p[u].y - q[u].y;
      const float z = p[u].z - q[u].z, w = p[u].w - q[u].w;
      s[u] += (x * x + y * y) + (z * z + w * w);
    }
  }
  for (; i < n4; i += step) {
    const float4 p = a[i], q = b[i];
    const float x = p.x - q.x, y = p.y - q.y, z = p.z - q.z, w = p.w - q.w;
    s[0] += (x * x + y * y) + (z * z + w * w);
  }
  const float sum = block_sum((s[0] + s[1]) + (s[2] + s[3]));
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(256)
join_parts_k(const float* __restrict__ parts, float* __restrict__ y, int count, float scale) {
  float sum = 0.f;
  for (int i = threadIdx.x; i < count; i += 256) sum += parts[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *y = sum * scale;
}

torch::Tensor run(torch::Tensor a, torch::Tensor b) {
  const int blocks = 132 * 8;
  auto parts = torch::empty({blocks}, a.options());
  auto y = torch::empty({}, a.options());
  error_parts_k<<<blocks, 256>>>(reinterpret_cast<const float4*>(a.data_ptr<float>()),
                                 reinterpret_cast<const float4*>(b.data_ptr<float>()),
                                 parts.data_ptr<float>(), (int)(a.numel() / 4));
  join_parts_k<<<1, 256>>>(parts.data_ptr<float>(), y.data_ptr<float>(), blocks,
                           1.f / (float)a.numel());
  return y;
}
""",
    ),
    label=Label(
        limited_by="The device's memory: both inputs are read once, eight 16-byte loads in flight "
        "a thread. The second kernel is one block of latency, a few microseconds.",
        right_advice="Stop. At most the second launch could go, by letting the last block finish.",
        must_not=STREAMS
        - {Claim.FUSE, Claim.FEWER_LAUNCHES, Claim.MORE_BLOCKS, Claim.FEWER_BARRIERS}
        | {Claim.USE_SHUFFLES, Claim.MORE_LOADS_IN_FLIGHT},
        should=(Claim.STOP, Claim.FEWER_LAUNCHES),
    ),
)

KERNELS = (TRANSPOSE, COLUMN_SUM, ROW_SCAN, SQUARED_ERROR)
