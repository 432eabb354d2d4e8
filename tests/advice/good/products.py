"""Matrix products in fp32 on the ordinary cores: tiles in shared memory and in registers."""

from tests.advice.good.claim import Claim
from tests.advice.good.good_kernel import GoodKernel, cuda
from tests.advice.good.label import Label
from tests.task import task

_PRODUCTS = frozenset({
    Claim.COALESCE, Claim.WIDEN_ACCESSES, Claim.MOVE_FEWER_BYTES, Claim.USE_SHARED_MEMORY,
    Claim.TILE_IN_REGISTERS, Claim.AVOID_BANK_CONFLICTS, Claim.AVOID_SPILLS,
    Claim.USE_TENSOR_CORES, Claim.LOWER_PRECISION, Claim.LESS_ARITHMETIC, Claim.AVOID_FP64,
    Claim.LOWER_PIPE_USE, Claim.MORE_OCCUPANCY, Claim.MORE_BLOCKS, Claim.AVOID_ATOMICS,
    Claim.USE_SHUFFLES, Claim.AVOID_DIVERGENCE, Claim.FUSE, Claim.FEWER_LAUNCHES,
    Claim.REPLAY_A_GRAPH,
    Claim.LEAVE_THE_LIBRARY,
})  # fmt: skip
_GEMM = r"""
// 128 x 128 outputs a block, 8 x 8 a thread. The depth goes by eights through two buffers: the next
// eight are on their way to registers while this eight is used, so one barrier a step is enough.
template <bool TRANSPOSED, bool EPILOGUE>
__global__ void __launch_bounds__(256, 2)
gemm_k(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
       float* __restrict__ c, int n, int depth) {
  __shared__ __align__(16) float as[2][8][132], bs[2][8][TRANSPOSED ? 132 : 128];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  const int row0 = blockIdx.y * 128, column0 = blockIdx.x * 128;
  const int row = warp / 2 * 32 + lane / 8 * 4, column = warp % 2 * 64 + lane % 8 * 4;
  const int ar = t / 2, ak = t % 2 * 4;
  const int br = TRANSPOSED ? ar : t / 32, bk = TRANSPOSED ? ak : lane * 4;
  const float* ap = a + (size_t)(row0 + ar) * depth + ak;
  const float* bp = TRANSPOSED ? b + (size_t)(column0 + br) * depth + bk
                               : b + (size_t)br * n + column0 + bk;
  const size_t b_step = TRANSPOSED ? 8 : (size_t)8 * n;
  float4 av = *reinterpret_cast<const float4*>(ap);
  float4 bv = *reinterpret_cast<const float4*>(bp);
  float sum[8][8] = {};
  int now = 0;
  for (int k0 = 0;; now ^= 1) {
    as[now][ak + 0][ar] = av.x;
    as[now][ak + 1][ar] = av.y;
    as[now][ak + 2][ar] = av.z;
    as[now][ak + 3][ar] = av.w;
    if (TRANSPOSED) {
      bs[now][bk + 0][br] = bv.x;
      bs[now][bk + 1][br] = bv.y;
      bs[now][bk + 2][br] = bv.z;
      bs[now][bk + 3][br] = bv.w;
    } else {
      *reinterpret_cast<float4*>(&bs[now][br][bk]) = bv;
    }
    __syncthreads();
    k0 += 8;
    if (k0 < depth) {
      ap += 8;
      bp += b_step;
      av = *reinterpret_cast<const float4*>(ap);
      bv = *reinterpret_cast<const float4*>(bp);
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const float4 p0 = *reinterpret_cast<const float4*>(&as[now][k][row]);
      const float4 p1 = *reinterpret_cast<const float4*>(&as[now][k][row + 16]);
      const float4 q0 = *reinterpret_cast<const float4*>(&bs[now][k][column]);
      const float4 q1 = *reinterpret_cast<const float4*>(&bs[now][k][column + 32]);
      const float p[8] = {p0.x, p0.y, p0.z, p0.w, p1.x, p1.y, p1.z, p1.w};
      const float q[8] = {q0.x, q0.y, q0.z, q0.w, q1.x, q1.y, q1.z, q1.w};
#pragma unroll
      for (int u = 0; u < 8; ++u)
#pragma unroll
        for (int v = 0; v < 8; ++v) sum[u][v] = fmaf(p[u], q[v], sum[u][v]);
    }
    if (k0 >= depth) break;
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int j = column0 + column + h * 32;
    const float4 add = EPILOGUE ? *reinterpret_cast<const float4*>(bias + j)
                                : make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      float4 v = make_float4(sum[u][h * 4 + 0] + add.x, sum[u][h * 4 + 1] + add.y,
                             sum[u][h * 4 + 2] + add.z, sum[u][h * 4 + 3] + add.w);
      if (EPILOGUE)
        v = make_float4(fmaxf(v.x, 0.f), fmaxf(v.y, 0.f), fmaxf(v.z, 0.f), fmaxf(v.w, 0.f));
      const int i = row0 + row + u / 4 * 16 + u % 4;
      *reinterpret_cast<float4*>(c + (size_t)i * n + j) = v;
    }
  }
}
"""

GEMM = GoodKernel(
    name="gemm",
    reference=task("return a @ b", a="torch.randn(4096, 1024)", b="torch.randn(1024, 4096)"),
    source=cuda(
        "gemm",
        _GEMM
        + r"""
torch::Tensor run(torch::Tensor a, torch::Tensor b) {
  const int m = a.size(0), depth = a.size(1), n = b.size(1);
  auto c = torch::empty({m, n}, a.options());
  gemm_k<false, false><<<dim3(n / 128, m / 128), 256>>>(
      a.data_ptr<float>(), b.data_ptr<float>(), nullptr, c.data_ptr<float>(), n, depth);
  return c;
}
""",
    ),
    label=Label(
        limited_by="The fp32 pipe (FFMA), in a compute-bound product that may not use tensor "
        "cores. A better kernel keeps that pipe busier. 128 registers a thread and two blocks an "
        "SM are what tiles of 8 x 8 need. What stalls there are come from shared memory's latency "
        "and the barrier each eight steps of the depth.",
        right_advice="Little: deeper stages (16, or asynchronous copies in three or four "
        "buffers), fragments of the next step loaded ahead, or cuBLAS.",
        must_not=_PRODUCTS | {Claim.MORE_CACHE_REUSE},
        should=(Claim.USE_THE_LIBRARY, Claim.MORE_LOADS_IN_FLIGHT, Claim.FEWER_BARRIERS),
    ),
)

LINEAR_RELU = GoodKernel(
    name="linear_relu",
    reference=task(
        "return torch.relu(F.linear(x, w, b))",
        x="torch.randn(2048, 2048)",
        w="torch.randn(4096, 2048)",
        b="torch.randn(4096)",
    ),
    source=cuda(
        "linear_relu",
        _GEMM
        + r"""
torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
  const int m = x.size(0), depth = x.size(1), n = w.size(0);
  auto y = torch::empty({m, n}, x.options());
  gemm_k<true, true><<<dim3(n / 128, m / 128), 256>>>(
      x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), n,
      depth);
  return y;
}
""",
    ),
    label=Label(
        limited_by="The fp32 pipe (FFMA), as in `gemm`. The bias and the ReLU are applied in "
        "registers, so the whole task is one launch. 512 blocks are 1.9 waves of two an SM, which "
        "is a good fit.",
        right_advice="Little: deeper stages or fragments loaded ahead; or cuBLAS's product with a "
        "fused epilogue.",
        must_not=_PRODUCTS | {Claim.MORE_CACHE_REUSE},
        should=(Claim.USE_THE_LIBRARY, Claim.MORE_LOADS_IN_FLIGHT, Claim.FEWER_BARRIERS),
    ),
)

SMALL_PRODUCTS = GoodKernel(
    name="small_products",
    reference=task(
        "return torch.bmm(a, b)", a="torch.randn(8192, 64, 64)", b="torch.randn(8192, 64, 64)"
    ),
    source=cuda(
        "small_products",
        r"""
// One block a pair of 64 x 64: both lie in shared memory as a whole, 8 x 4 outputs a thread.
__global__ void __launch_bounds__(128)
small_products_k(const float4* __restrict__ a, const float4* __restrict__ b,
                 float4* __restrict__ c) {
  __shared__ __align__(16) float as[64][68], bs[64][64];
  const int t = threadIdx.x, tx = t % 16, ty = t / 16;
  const size_t base = (size_t)blockIdx.x * 1024;
  float4 av[8], bv[8];
#pragma unroll
  for (int u = 0; u < 8; ++u) {
    av[u] = __ldcs(a + base + t + u * 128);
    bv[u] = __ldcs(b + base + t + u * 128);
  }
#pragma unroll
  for (int u = 0; u < 8; ++u) {
    *reinterpret_cast<float4*>(&as[ty + u * 8][tx * 4]) = av[u];
    *reinterpret_cast<float4*>(&bs[ty + u * 8][tx * 4]) = bv[u];
  }
  __syncthreads();
  float sum[8][4] = {};
#pragma unroll 4
  for (int k = 0; k < 64; k += 4) {
    float q[4][4];
#pragma unroll
    for (int d = 0; d < 4; ++d)
      *reinterpret_cast<float4*>(q[d]) = *reinterpret_cast<const float4*>(&bs[k + d][tx * 4]);
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      const float4 p = *reinterpret_cast<const float4*>(&as[ty + u * 8][k]);
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        sum[u][v] = fmaf(p.x, q[0][v], sum[u][v]);
        sum[u][v] = fmaf(p.y, q[1][v], sum[u][v]);
        sum[u][v] = fmaf(p.z, q[2][v], sum[u][v]);
        sum[u][v] = fmaf(p.w, q[3][v], sum[u][v]);
      }
    }
  }
#pragma unroll
  for (int u = 0; u < 8; ++u)
    __stcs(c + base + t + u * 128, make_float4(sum[u][0], sum[u][1], sum[u][2], sum[u][3]));
}

torch::Tensor run(torch::Tensor a, torch::Tensor b) {
  auto c = torch::empty_like(a);
  small_products_k<<<a.size(0), 128>>>(reinterpret_cast<const float4*>(a.data_ptr<float>()),
                                       reinterpret_cast<const float4*>(b.data_ptr<float>()),
                                       reinterpret_cast<float4*>(c.data_ptr<float>()));
  return c;
}
""",
    ),
    label=Label(
        limited_by="The device's memory first: each operand is read once and each result is "
        "written once (403 MB), and a block's sixteen 16-byte loads a thread come before its only "
        "barrier. Shared memory and FFMA come close behind, and several blocks an SM overlap one "
        "pair's loads with another's products.",
        right_advice="Little: overlap the next pair's loads with this pair's products within a "
        "block (asynchronous copies), for better overlap of memory and arithmetic.",
        must_not=_PRODUCTS - {Claim.MORE_OCCUPANCY}
        | {Claim.MORE_CACHE_REUSE, Claim.FEWER_BARRIERS},
        should=(Claim.MORE_LOADS_IN_FLIGHT, Claim.STOP),
    ),
)

KERNELS = (GEMM, LINEAR_RELU, SMALL_PRODUCTS)
