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

ONE_BULK_STAGE = Case(
    name="one_bulk_stage",
    fault="bulk copies with an mbarrier into one buffer: all warps of a block wait for each row",
    rules=frozenset({"memory_latency"}),
    reference=task("return x.amax(1)", x="torch.randn(264, 256, 1024)"),
    cuda=r"""
 #include <cstdint>

 constexpr int ROW = 1024;
-constexpr int STAGES = 1;
+constexpr int STAGES = 8;

 __device__ unsigned place(const void* at) {
   return static_cast<unsigned>(__cvta_generic_to_shared(at));
 }

 __device__ void fetch(float* to, const float* from, uint64_t* full) {
   asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                ::"r"(place(full)), "r"(ROW * 4) : "memory");
   asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                " [%0], [%1], %2, [%3];"
                ::"r"(place(to)), "l"(from), "r"(ROW * 4), "r"(place(full)) : "memory");
 }

 __device__ void wait(uint64_t* full, unsigned parity) {
   unsigned done;
   do {
     asm volatile("{\n.reg .pred p;\n"
                  "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                  "selp.u32 %0, 1, 0, p;\n}"
                  : "=r"(done) : "r"(place(full)), "r"(parity) : "memory");
   } while (!done);
 }

 // A block a slice, a thread a column.
 __global__ void __launch_bounds__(1024)
 one_bulk_stage_k(const float* __restrict__ x, float* __restrict__ y, int rows) {
   __shared__ __align__(128) float buffer[STAGES][ROW];
   __shared__ __align__(8) uint64_t full[STAGES];
   x += (size_t)blockIdx.x * rows * ROW;
   if (threadIdx.x == 0) {
     for (int s = 0; s < STAGES; ++s)
       asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(place(full + s)) : "memory");
     asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
     for (int s = 0; s < STAGES; ++s) fetch(buffer[s], x + s * ROW, full + s);
   }
   __syncthreads();
   float most = -INFINITY;
   for (int r = 0; r < rows; ++r) {
     const int s = r % STAGES;
     wait(full + s, r / STAGES % 2);
     most = fmaxf(most, buffer[s][threadIdx.x]);
     __syncthreads();
     if (threadIdx.x == 0 && r + STAGES < rows)
       fetch(buffer[s], x + (size_t)(r + STAGES) * ROW, full + s);
   }
   y[blockIdx.x * ROW + threadIdx.x] = most;
 }

 torch::Tensor run(torch::Tensor x) {
   const int slices = x.size(0), rows = x.size(1);
   auto y = torch::empty({slices, ROW}, x.options());
   one_bulk_stage_k<<<slices, ROW>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows);
   return y;
 }
""",
)

PERSISTENT_TAIL = Case(
    name="persistent_tail",
    fault="a persistent block an SM: 146 large tiles for 132 blocks, so 14 blocks take two",
    rules=frozenset({"uneven_work"}),
    reference=task(
        """
        for _ in range(64):
            x = x * 0.9 + 0.01
        return x
        """,
        x="torch.randn(146, 131072)",
    ),
    cuda=r"""
-constexpr int TILE = 131072;
+constexpr int TILE = 4096;

 __global__ void persistent_tail_k(const float* __restrict__ x, float* __restrict__ y, int tiles) {
   for (int t = blockIdx.x; t < tiles; t += gridDim.x)
     for (int i = threadIdx.x; i < TILE / 4; i += blockDim.x) {
       float4 v = reinterpret_cast<const float4*>(x)[(size_t)t * (TILE / 4) + i];
 #pragma unroll
       for (int k = 0; k < 64; ++k) {
         v.x = fmaf(v.x, 0.9f, 0.01f);
         v.y = fmaf(v.y, 0.9f, 0.01f);
         v.z = fmaf(v.z, 0.9f, 0.01f);
         v.w = fmaf(v.w, 0.9f, 0.01f);
       }
       reinterpret_cast<float4*>(y)[(size_t)t * (TILE / 4) + i] = v;
     }
 }

 torch::Tensor run(torch::Tensor x) {
   auto y = torch::empty_like(x);
   const int tiles = (int)(x.numel() / TILE);
   persistent_tail_k<<<132, 1024>>>(x.data_ptr<float>(), y.data_ptr<float>(), tiles);
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

CASES = (ONE_STAGE, ONE_BULK_STAGE, PERSISTENT_TAIL, CLEARED_SCRATCH, SHUFFLED_STATISTICS)
