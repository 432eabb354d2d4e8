"""Heavy operations left to cuBLAS or cuDNN, with one kernel for all that comes after."""

from evaluator.settings import Precision
from tests.advice.good.claim import Claim
from tests.advice.good.good_kernel import GoodKernel, cuda
from tests.advice.good.label import Label
from tests.task import as_candidate, task

_LIBRARY = frozenset({
    Claim.REPLAY_A_GRAPH,
    Claim.USE_THE_LIBRARY, Claim.LEAVE_THE_LIBRARY, Claim.COALESCE, Claim.WIDEN_ACCESSES,
    Claim.USE_SHARED_MEMORY, Claim.AVOID_BANK_CONFLICTS, Claim.TILE_IN_REGISTERS,
    Claim.USE_SHUFFLES, Claim.AVOID_SPILLS, Claim.LOWER_PRECISION, Claim.LESS_ARITHMETIC,
    Claim.AVOID_FP64, Claim.LOWER_PIPE_USE, Claim.MORE_OCCUPANCY, Claim.AVOID_ATOMICS,
    Claim.AVOID_DIVERGENCE, Claim.FEWER_BARRIERS, Claim.SHORTEN_DEPENDENCIES,
    Claim.FEWER_INDEX_INSTRUCTIONS, Claim.MORE_CACHE_REUSE,
})  # fmt: skip
"""Nobody can change what is inside the library's kernel, and what is written here streams well."""

LIBRARY_SILU = GoodKernel(
    name="library_silu",
    reference=task(
        "y = F.linear(x, w, b)\nreturn y * torch.sigmoid(y) * 0.5",
        x="torch.randn(2048, 2048)",
        w="torch.randn(8192, 2048)",
        b="torch.randn(8192)",
    ),
    source=cuda(
        "library_silu",
        r"""
__device__ __forceinline__ float half_silu(float v) { return 0.5f * v / (1.f + expf(-v)); }

__global__ void __launch_bounds__(256) half_silu_k(float4* __restrict__ y, int n4) {
  const int i = blockIdx.x * 1024 + threadIdx.x;
  float4 v[4];
#pragma unroll
  for (int u = 0; u < 4; ++u)
    if (i + u * 256 < n4) v[u] = y[i + u * 256];
#pragma unroll
  for (int u = 0; u < 4; ++u)
    if (i + u * 256 < n4)
      y[i + u * 256] = make_float4(half_silu(v[u].x), half_silu(v[u].y), half_silu(v[u].z),
                                   half_silu(v[u].w));
}

torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
  auto y = at::addmm(b, x, w.t());
  const int n4 = y.numel() / 4;
  half_silu_k<<<(n4 + 1023) / 1024, 256>>>(reinterpret_cast<float4*>(y.data_ptr<float>()), n4);
  return y;
}
""",
    ),
    label=Label(
        limited_by="cuBLAS's fp32 product takes nearly all of the time and is bound by the fp32 "
        "pipe. The kernel after it reads and writes the result once more, in place, and part of "
        "that hits L2.",
        right_advice="Stop, or fuse the activation into a product of one's own only if that "
        "reaches cuBLAS's speed. The bias is in the product's epilogue already.",
        must_not=_LIBRARY - {Claim.LEAVE_THE_LIBRARY, Claim.MORE_CACHE_REUSE}
        | {Claim.USE_TENSOR_CORES, Claim.MORE_BLOCKS},
        should=(Claim.STOP, Claim.FUSE),
    ),
)

LIBRARY_CONV = GoodKernel(
    name="library_conv",
    reference=task(
        "return F.hardswish(F.conv2d(x, w, b, padding=1)) * 2.0",
        x="torch.randn(64, 64, 56, 56)",
        w="torch.randn(128, 64, 3, 3)",
        b="torch.randn(128)",
    ),
    source=cuda(
        "library_conv",
        r"""
__device__ __forceinline__ float twice_hardswish(float v) {
  return v * fminf(fmaxf(v + 3.f, 0.f), 6.f) * (2.f / 6.f);
}

// A block a plane of 784 times four values, so that the bias is one value a block.
__global__ void __launch_bounds__(256)
bias_hardswish_k(float4* __restrict__ y, const float* __restrict__ bias, int channels) {
  const float b = bias[blockIdx.x % channels];
  float4* plane = y + (size_t)blockIdx.x * 784;
  float4 v[4];
#pragma unroll
  for (int u = 0; u < 4; ++u)
    if (threadIdx.x + u * 256 < 784) v[u] = plane[threadIdx.x + u * 256];
#pragma unroll
  for (int u = 0; u < 4; ++u)
    if (threadIdx.x + u * 256 < 784)
      plane[threadIdx.x + u * 256] =
          make_float4(twice_hardswish(v[u].x + b), twice_hardswish(v[u].y + b),
                      twice_hardswish(v[u].z + b), twice_hardswish(v[u].w + b));
}

torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
  auto y = at::conv2d(x, w, {}, at::IntArrayRef{1, 1}, at::IntArrayRef{1, 1}).contiguous();
  bias_hardswish_k<<<y.size(0) * y.size(1), 256>>>(
      reinterpret_cast<float4*>(y.data_ptr<float>()), b.data_ptr<float>(), (int)y.size(1));
  return y;
}
""",
    ),
    label=Label(
        limited_by="cuDNN's fp32 convolution takes most of the time and is bound by arithmetic. "
        "Bias, hardswish and scale are one pass in place over its result, at the memory's speed.",
        right_advice="Stop on the kernel after it; the rest is cuDNN's choice of algorithm, for "
        "example by trying its algorithms out or another memory format.",
        must_not=_LIBRARY - {Claim.LESS_ARITHMETIC, Claim.LEAVE_THE_LIBRARY, Claim.MORE_CACHE_REUSE}
        | {Claim.USE_TENSOR_CORES, Claim.MORE_BLOCKS},
        should=(Claim.STOP,),
    ),
)

_PRODUCT = task("return a @ b.t()", a="torch.randn(4096, 1024)", b="torch.randn(4096, 1024)")
LIBRARY_PRODUCT = GoodKernel(
    name="library_product",
    reference=_PRODUCT,
    source=as_candidate(_PRODUCT),
    label=Label(
        limited_by="cuBLAS's fp32 product, bound by the fp32 pipe and close to the device's rate. "
        "There is no other kernel.",
        right_advice="Stop: fp32 without tensor cores leaves nothing but a few percent.",
        must_not=_LIBRARY
        | {
            Claim.USE_TENSOR_CORES, Claim.FUSE, Claim.FEWER_LAUNCHES, Claim.MOVE_FEWER_BYTES,
            Claim.MORE_LOADS_IN_FLIGHT, Claim.MORE_BLOCKS,
        },
        should=(Claim.STOP,),
    ),
)  # fmt: skip

_HALF_PRODUCT = task("return a @ b", a="torch.randn(8192, 4096)", b="torch.randn(4096, 8192)")
BF16_PRODUCT = GoodKernel(
    name="bf16_product",
    reference=_HALF_PRODUCT,
    source=as_candidate(_HALF_PRODUCT),
    precision=Precision.BF16,
    label=Label(
        limited_by="cuBLAS's bf16 product on the tensor cores, close to the rate that the power "
        "limit allows. There is no other kernel. One block an SM with many registers and much "
        "shared memory is what such a kernel needs.",
        right_advice="Stop.",
        must_not=_LIBRARY
        | {
            Claim.USE_TENSOR_CORES, Claim.FUSE, Claim.FEWER_LAUNCHES, Claim.MOVE_FEWER_BYTES,
            Claim.MORE_LOADS_IN_FLIGHT, Claim.MORE_BLOCKS,
        },
        should=(Claim.STOP,),
    ),
)  # fmt: skip

KERNELS = (LIBRARY_SILU, LIBRARY_CONV, LIBRARY_PRODUCT, BF16_PRODUCT)
