"""Faults in how threads reach memory: coalescing, width, banks, and doing so again and again."""

from tests.advice.case import Case
from tests.task import task

ROW_SUMS = Case(
    name="row_sums",
    fault="one thread a row: the lanes of a warp load 512 bytes apart",
    rules=frozenset({"uncoalesced_loads"}),
    reference=task("return x.sum(1)", x="torch.randn(524288, 128)"),
    cuda=r"""
 __global__ void row_sums_k(const float* __restrict__ x, float* __restrict__ y, int rows) {
-  const int row = blockIdx.x * blockDim.x + threadIdx.x;
-  if (row >= rows) return;
-  float sum = 0.f;
-  for (int j = 0; j < 128; ++j) sum += x[(size_t)row * 128 + j];
-  y[row] = sum;
+  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
+  if (row >= rows) return;
+  const float4 v = reinterpret_cast<const float4*>(x)[(size_t)row * 32 + lane];
+  float sum = (v.x + v.y) + (v.z + v.w);
+  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
+  if (lane == 0) y[row] = sum;
 }

 torch::Tensor run(torch::Tensor x) {
   const int rows = x.size(0);
   auto y = torch::empty({rows}, x.options());
-  row_sums_k<<<(rows + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows);
+  row_sums_k<<<(rows + 7) / 8, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows);
   return y;
 }
""",
)

_TRANSPOSE = task("return (x * 2.0).t().contiguous()", x="torch.randn(8192, 4096)")

TRANSPOSE_STORES = Case(
    name="transpose_stores",
    fault="a transpose without a tile: the lanes of a warp store 32 KiB apart",
    rules=frozenset({"uncoalesced_stores"}),
    reference=_TRANSPOSE,
    cuda=r"""
 __global__ void transpose_k(const float* __restrict__ x, float* __restrict__ y, int rows,
                             int columns) {
-  const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
-  if (j < columns) y[(size_t)j * rows + i] = 2.f * x[(size_t)i * columns + j];
+  __shared__ float tile[32][33];
+  const int t = threadIdx.x, row0 = blockIdx.y * 32, column0 = blockIdx.x * 32;
+#pragma unroll
+  for (int k = threadIdx.y, end = k + 32; k < end; k += 8)
+    tile[k][t] = x[(size_t)(row0 + k) * columns + column0 + t];
+  __syncthreads();
+#pragma unroll
+  for (int k = threadIdx.y, end = k + 32; k < end; k += 8)
+    y[(size_t)(column0 + k) * rows + row0 + t] = 2.f * tile[t][k];
 }

 torch::Tensor run(torch::Tensor x) {
   const int rows = x.size(0), columns = x.size(1);
   auto y = torch::empty({columns, rows}, x.options());
-  const dim3 grid(columns / 256, rows), block(256);
+  const dim3 grid(columns / 32, rows / 32), block(32, 8);
   transpose_k<<<grid, block>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, columns);
   return y;
 }
""",
)

BANKS_TRANSPOSE = Case(
    name="banks_transpose",
    fault="a tile of 32 x 32 without padding, read by columns: 32-way bank conflicts",
    rules=frozenset({"bank_conflicts"}),
    reference=_TRANSPOSE,
    cuda=r"""
 __global__ void transpose_k(const float* __restrict__ x, float* __restrict__ y, int rows,
                             int columns) {
-  __shared__ float tile[32][32];
+  __shared__ float tile[32][33];
   const int t = threadIdx.x, row0 = blockIdx.y * 32, column0 = blockIdx.x * 32;
 #pragma unroll
   for (int k = threadIdx.y, end = k + 32; k < end; k += 8)
     tile[k][t] = x[(size_t)(row0 + k) * columns + column0 + t];
   __syncthreads();
 #pragma unroll
   for (int k = threadIdx.y, end = k + 32; k < end; k += 8)
     y[(size_t)(column0 + k) * rows + row0 + t] = 2.f * tile[t][k];
 }

 torch::Tensor run(torch::Tensor x) {
   const int rows = x.size(0), columns = x.size(1);
   auto y = torch::empty({columns, rows}, x.options());
   const dim3 grid(columns / 32, rows / 32), block(32, 8);
   transpose_k<<<grid, block>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, columns);
   return y;
 }
""",
)

CASES = (
    ROW_SUMS,
    TRANSPOSE_STORES,
    BANKS_TRANSPOSE,
)
