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

ADD_TRANSPOSED = Case(
    name="add_transposed",
    fault="the second operand is read down its columns",
    rules=frozenset({"uncoalesced_loads"}),
    reference=task("return a + b.t()", a="torch.randn(4096, 4096)", b="torch.randn(4096, 4096)"),
    cuda=r"""
 __global__ void add_transposed_k(const float* __restrict__ a, const float* __restrict__ b,
                                  float* __restrict__ y, int n) {
-  const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
-  if (j < n) y[(size_t)i * n + j] = a[(size_t)i * n + j] + b[(size_t)j * n + i];
+  __shared__ float tile[32][33];
+  const int x = threadIdx.x, row0 = blockIdx.y * 32, column0 = blockIdx.x * 32;
+#pragma unroll
+  for (int k = threadIdx.y, end = k + 32; k < end; k += 8)
+    tile[k][x] = b[(size_t)(column0 + k) * n + row0 + x];
+  __syncthreads();
+#pragma unroll
+  for (int k = threadIdx.y, end = k + 32; k < end; k += 8) {
+    const size_t at = (size_t)(row0 + k) * n + column0 + x;
+    y[at] = a[at] + tile[x][k];
+  }
 }

 torch::Tensor run(torch::Tensor a, torch::Tensor b) {
   const int n = a.size(0);
   auto y = torch::empty_like(a);
-  const dim3 grid(n / 256, n), block(256);
+  const dim3 grid(n / 32, n / 32), block(32, 8);
   add_transposed_k<<<grid, block>>>(a.data_ptr<float>(), b.data_ptr<float>(),
                                     y.data_ptr<float>(), n);
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

BANKS_CUMSUM = Case(
    name="banks_cumsum",
    fault="each thread walks along its own row of 32 floats in shared memory: 32-way conflicts",
    rules=frozenset({"bank_conflicts"}),
    reference=task("return torch.cumsum(x, 1)", x="torch.randn(1048576, 32)"),
    cuda=r"""
 __global__ void cumsum_k(const float* __restrict__ x, float* __restrict__ y) {
-  __shared__ float tile[128][32];
+  __shared__ float tile[128][33];
   const size_t base = (size_t)blockIdx.x * 128 * 32;
   const int row = threadIdx.x / 32, column = threadIdx.x % 32;
 #pragma unroll
   for (int k = 0; k < 128; k += 4) tile[row + k][column] = x[base + (row + k) * 32 + column];
   __syncthreads();
   float sum = 0.f;
   for (int j = 0; j < 32; ++j) {
     sum += tile[threadIdx.x][j];
     tile[threadIdx.x][j] = sum;
   }
   __syncthreads();
   for (int k = 0; k < 128; k += 4) y[base + (row + k) * 32 + column] = tile[row + k][column];
 }

 torch::Tensor run(torch::Tensor x) {
   auto y = torch::empty_like(x);
   cumsum_k<<<x.size(0) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>());
   return y;
 }
""",
)

NAIVE_GEMM = Case(
    name="naive_gemm",
    fault="a matrix product without tiles: every thread loads its row and column from the caches",
    # All three say that the same values are fetched from a cache again and again, and to tile.
    rules=frozenset({"cache_bandwidth", "poor_l1_reuse", "poor_l2_reuse"}),
    reference=task("return a @ b", a="torch.randn(2048, 512)", b="torch.randn(512, 2048)"),
    cuda=r"""
 __global__ void gemm_k(const float* __restrict__ a, const float* __restrict__ b,
                        float* __restrict__ c, int n, int depth) {
-  const int j = blockIdx.x * 16 + threadIdx.x % 16, i = blockIdx.y * 16 + threadIdx.x / 16;
-  float sum = 0.f;
-  for (int k = 0; k < depth; ++k) sum += a[(size_t)i * depth + k] * b[(size_t)k * n + j];
-  c[(size_t)i * n + j] = sum;
+  // 64 x 64 outputs a block, 4 x 4 a thread, 16 steps of the depth at a time.
+  __shared__ float as[16][68], bs[16][64];
+  const int t = threadIdx.x, row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
+  const int ty = t / 16 * 4, tx = t % 16 * 4;
+  float sum[4][4] = {};
+  for (int k0 = 0; k0 < depth; k0 += 16) {
+    const float4 av = *reinterpret_cast<const float4*>(
+        a + (size_t)(row0 + t / 4) * depth + k0 + t % 4 * 4);
+    const float4 bv = *reinterpret_cast<const float4*>(
+        b + (size_t)(k0 + t / 16) * n + column0 + t % 16 * 4);
+    as[t % 4 * 4 + 0][t / 4] = av.x;
+    as[t % 4 * 4 + 1][t / 4] = av.y;
+    as[t % 4 * 4 + 2][t / 4] = av.z;
+    as[t % 4 * 4 + 3][t / 4] = av.w;
+    *reinterpret_cast<float4*>(&bs[t / 16][t % 16 * 4]) = bv;
+    __syncthreads();
+    for (int k = 0; k < 16; ++k) {
+      const float4 p = *reinterpret_cast<const float4*>(&as[k][ty]);
+      const float4 q = *reinterpret_cast<const float4*>(&bs[k][tx]);
+      const float ps[4] = {p.x, p.y, p.z, p.w}, qs[4] = {q.x, q.y, q.z, q.w};
+      for (int u = 0; u < 4; ++u)
+        for (int v = 0; v < 4; ++v) sum[u][v] += ps[u] * qs[v];
+    }
+    __syncthreads();
+  }
+  for (int u = 0; u < 4; ++u)
+    *reinterpret_cast<float4*>(c + (size_t)(row0 + ty + u) * n + column0 + tx) =
+        make_float4(sum[u][0], sum[u][1], sum[u][2], sum[u][3]);
 }

 torch::Tensor run(torch::Tensor a, torch::Tensor b) {
   const int m = a.size(0), depth = a.size(1), n = b.size(1);
   auto c = torch::empty({m, n}, a.options());
-  const dim3 grid(n / 16, m / 16);
+  const dim3 grid(n / 64, m / 64);
   gemm_k<<<grid, 256>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), n, depth);
   return c;
 }
""",
)

CASES = (
    ROW_SUMS, ADD_TRANSPOSED, TRANSPOSE_STORES, BANKS_TRANSPOSE, BANKS_CUMSUM, NAIVE_GEMM,
)  # fmt: skip
