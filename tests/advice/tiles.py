"""Faults in what lies side by side: values in shared memory, fields of a record."""

from tests.advice.case import Case
from tests.task import task

GEMM_CONFLICTS = Case(
    name="gemm_conflicts",
    fault="a register-tiled fp32 product whose lanes read shared memory 512 bytes apart: 16 ways",
    rules=frozenset({"bank_conflicts"}),
    reference=task("return a @ b.t()", a="torch.randn(2048, 1024)", b="torch.randn(2048, 1024)"),
    cuda=r"""
 constexpr int TILE = 128, DEPTH = 16;
-constexpr int PAD = 0;
+constexpr int PAD = 1;

 __global__ void __launch_bounds__(256) gemm_conflicts_k(const float* __restrict__ a,
                                                         const float* __restrict__ b,
                                                         float* __restrict__ c, int n, int depth) {
   __shared__ float as[DEPTH][TILE + 4], bs[TILE][DEPTH + PAD];
   const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
   const int row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE;
   float sums[8][8] = {};
   for (int k0 = 0; k0 < depth; k0 += DEPTH) {
     for (int i = threadIdx.x; i < TILE * DEPTH; i += 256) {
       const int r = i / DEPTH, k = i % DEPTH;
       as[k][r] = a[(size_t)(row0 + r) * depth + k0 + k];
       bs[r][k] = b[(size_t)(column0 + r) * depth + k0 + k];
     }
     __syncthreads();
 #pragma unroll
     for (int k = 0; k < DEPTH; ++k) {
       float left[8], right[8];
 #pragma unroll
       for (int i = 0; i < 8; ++i) left[i] = as[k][ty * 8 + i];
 #pragma unroll
-      for (int j = 0; j < 8; ++j) right[j] = bs[tx * 8 + j][k];
+      for (int j = 0; j < 8; ++j) right[j] = bs[tx + 16 * j][k];
 #pragma unroll
       for (int i = 0; i < 8; ++i)
 #pragma unroll
         for (int j = 0; j < 8; ++j) sums[i][j] = fmaf(left[i], right[j], sums[i][j]);
     }
     __syncthreads();
   }
   for (int i = 0; i < 8; ++i) {
     float* row = c + (size_t)(row0 + ty * 8 + i) * n + column0;
-    for (int j = 0; j < 8; ++j) row[tx * 8 + j] = sums[i][j];
+    for (int j = 0; j < 8; ++j) row[tx + 16 * j] = sums[i][j];
   }
 }

 torch::Tensor run(torch::Tensor a, torch::Tensor b) {
   const int m = a.size(0), n = b.size(0), depth = a.size(1);
   auto c = torch::empty({m, n}, a.options());
   gemm_conflicts_k<<<dim3(n / TILE, m / TILE), 256>>>(a.data_ptr<float>(), b.data_ptr<float>(),
                                                       c.data_ptr<float>(), n, depth);
   return c;
 }
""",
)

INTERLEAVED_FIELDS = Case(
    name="interleaved_fields",
    fault="each thread stores the eight fields of its record one by one, 32 bytes apart",
    rules=frozenset({"uncoalesced_stores"}),
    reference=task(
        "return torch.stack([x * k for k in range(1, 9)], 1)", x="torch.randn(16777216)"
    ),
    cuda=r"""
 __global__ void interleaved_fields_k(const float* __restrict__ x, float* __restrict__ y, int n) {
-  const int i = blockIdx.x * blockDim.x + threadIdx.x;
-  if (i >= n) return;
-  const float v = x[i];
-#pragma unroll
-  for (int k = 0; k < 8; ++k) y[(size_t)i * 8 + k] = v * (k + 1);
+  const size_t first = (size_t)blockIdx.x * blockDim.x;
+  for (int j = threadIdx.x; j < 8 * blockDim.x; j += blockDim.x) {
+    const size_t i = first + j / 8;
+    if (i < n) y[first * 8 + j] = x[i] * (j % 8 + 1);
+  }
 }

 torch::Tensor run(torch::Tensor x) {
   const int n = x.size(0);
   auto y = torch::empty({n, 8}, x.options());
   interleaved_fields_k<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
   return y;
 }
""",
)

CASES = (GEMM_CONFLICTS, INTERLEAVED_FIELDS)
