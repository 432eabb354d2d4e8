"""Faults in how work is fed: too few stages, uneven shares, memory that is cleared, values that
pass through too many lanes."""

from tests.advice.case import Case
from tests.task import task

ONE_STAGE = Case(
    name="one_stage",
    fault="cp.async into one buffer: a block waits for each tile before it uses it",
    rules=frozenset({"memory_latency", "dram_rate"}),
    reference=task("return torch.tanh(x)", x="torch.randn(132 * 64, 8192)"),
    cuda=r"""
 constexpr int TILE = 8192;
-constexpr int STAGES = 1;
+constexpr int STAGES = 4;

 __device__ void fetch(float* to, const float* from) {
   for (int i = threadIdx.x * 4; i < TILE; i += 1024) {
     const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to + i));
     asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from + i));
   }
   asm volatile("cp.async.commit_group;");
 }

 __global__ void one_stage_k(const float* __restrict__ x, float* __restrict__ y, int tiles) {
   extern __shared__ float buffer[];
   x += (size_t)blockIdx.x * tiles * TILE;
   y += (size_t)blockIdx.x * tiles * TILE;
   for (int s = 0; s < STAGES - 1; ++s) fetch(buffer + s * TILE, x + s * TILE);
   for (int t = 0; t < tiles; ++t) {
     const int ahead = t + STAGES - 1;
     if (ahead < tiles) fetch(buffer + ahead % STAGES * TILE, x + ahead * TILE);
     else asm volatile("cp.async.commit_group;");
     asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1));
     __syncthreads();
     const float4* in = reinterpret_cast<const float4*>(buffer + t % STAGES * TILE);
     float4* out = reinterpret_cast<float4*>(y + t * TILE);
     for (int i = threadIdx.x; i < TILE / 4; i += 256) {
       const float4 v = in[i];
       out[i] = make_float4(tanhf(v.x), tanhf(v.y), tanhf(v.z), tanhf(v.w));
     }
     __syncthreads();
   }
 }

 torch::Tensor run(torch::Tensor x) {
   auto y = torch::empty_like(x);
   cudaFuncSetAttribute(one_stage_k, cudaFuncAttributeMaxDynamicSharedMemorySize, 4 * TILE * 4);
   // As much shared memory on either side, so that one block fits an SM.
   one_stage_k<<<132, 256, 4 * TILE * 4>>>(x.data_ptr<float>(), y.data_ptr<float>(), 64);
   return y;
 }
""",
)

CLEARED_SCRATCH = Case(
    name="cleared_scratch",
    fault="scratch memory that the kernel overwrites is cleared before each call",
    rules=frozenset({"launch_bound"}),
    reference=task("return x.sum(1)", x="torch.randn(4096, 512)"),
    cuda=r"""
 __global__ void cleared_scratch_k(const float* __restrict__ x, float* __restrict__ scratch,
                                   float* __restrict__ y, int rows) {
   const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
   if (row >= rows) return;
   float sum = 0.f;
 #pragma unroll
   for (int i = 0; i < 4; ++i) {
     const float4 v = reinterpret_cast<const float4*>(x)[(size_t)row * 128 + lane + 32 * i];
     sum += (v.x + v.y) + (v.z + v.w);
   }
   for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
   if (lane == 0) y[row] = scratch[row] = sum;
 }

 torch::Tensor run(torch::Tensor x) {
   const int rows = x.size(0);
   auto y = torch::empty({rows}, x.options()), scratch = torch::empty({16 << 20}, x.options());
-  cudaMemsetAsync(scratch.data_ptr<float>(), 0, scratch.numel() * 4);
   cleared_scratch_k<<<(rows + 7) / 8, 256>>>(x.data_ptr<float>(), scratch.data_ptr<float>(),
                                              y.data_ptr<float>(), rows);
   return y;
 }
""",
)

SHUFFLED_STATISTICS = Case(
    name="shuffled_statistics",
    fault="a lane an element: four statistics of each row of 32 by 20 shuffles",
    rules=frozenset({"shuffle_queue"}),
    reference=task(
        "return torch.stack((x.sum(1), (x * x).sum(1), x.amax(1), x.amin(1)), 1)",
        x="torch.randn(4194304, 32)",
    ),
    cuda=r"""
-constexpr int LANES = 32;
+constexpr int LANES = 8;

 __global__ void shuffled_statistics_k(const float* __restrict__ x, float4* __restrict__ y,
                                       int rows) {
   const int row = (blockIdx.x * blockDim.x + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
   if (row >= rows) return;
-  const float v = x[(size_t)row * 32 + lane];
-  float sum = v, squares = v * v, most = v, least = v;
+  const float4 v = reinterpret_cast<const float4*>(x)[(size_t)row * 8 + lane];
+  float sum = (v.x + v.y) + (v.z + v.w);
+  float squares = (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
+  float most = fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
+  float least = fminf(fminf(v.x, v.y), fminf(v.z, v.w));
   for (int d = LANES / 2; d > 0; d /= 2) {
     sum += __shfl_xor_sync(0xffffffffu, sum, d);
     squares += __shfl_xor_sync(0xffffffffu, squares, d);
     most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, d));
     least = fminf(least, __shfl_xor_sync(0xffffffffu, least, d));
   }
   if (lane == 0) y[row] = make_float4(sum, squares, most, least);
 }

 torch::Tensor run(torch::Tensor x) {
   const int rows = x.size(0);
   auto y = torch::empty({rows, 4}, x.options());
   const int blocks = (int)(((long)rows * LANES + 255) / 256);
   shuffled_statistics_k<<<blocks, 256>>>(x.data_ptr<float>(),
                                          reinterpret_cast<float4*>(y.data_ptr<float>()), rows);
   return y;
 }
""",
)

CASES = (
    ONE_STAGE,
    CLEARED_SCRATCH,
    SHUFFLED_STATISTICS,
)
