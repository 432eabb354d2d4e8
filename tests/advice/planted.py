"""Planted kernels that are judged and profiled on a GPU, each with one fault and without it."""

from tests.advice.case import Case
from tests.task import task

ELEMENTWISE = task("return {expression}", x="torch.randn(8192, 4096)")

ROW_SUMS = Case(
    name="row_sums",
    fault="one thread a row: the lanes of a warp load 512 bytes apart",
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

BANKS_TRANSPOSE = Case(
    name="banks_transpose",
    fault="a tile of 32 x 32 without padding, read by columns: 32-way bank conflicts",
    reference=task("return (x * 2.0).t().contiguous()", x="torch.randn(8192, 4096)"),
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

FEW_BLOCKS = Case(
    name="few_blocks",
    fault="16 blocks for 132 SMs",
    reference=ELEMENTWISE.format(expression="x * x + x"),
    cuda=r"""
 __global__ void square_add_k(const float4* __restrict__ x, float4* __restrict__ y, int n) {
   for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
     const float4 v = x[i];
     y[i] = make_float4(v.x * v.x + v.x, v.y * v.y + v.y, v.z * v.z + v.z, v.w * v.w + v.w);
   }
 }

 torch::Tensor run(torch::Tensor x) {
   auto y = torch::empty_like(x);
   const int n = x.numel() / 4;
-  square_add_k<<<16, 1024>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()),
+  square_add_k<<<(n + 1023) / 1024, 1024>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()),
       reinterpret_cast<float4*>(y.data_ptr<float>()), n);
   return y;
 }
""",
)

DOUBLE_GELU = Case(
    name="double_gelu",
    fault="constants without an f: GELU of fp32 in fp64",
    reference=ELEMENTWISE.format(expression='torch.nn.functional.gelu(x, approximate="tanh")'),
    cuda=r"""
 __global__ void gelu_k(const float4* __restrict__ x, float4* __restrict__ y) {
   const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
   const float4 given = x[i];
   const float in[4] = {given.x, given.y, given.z, given.w};
   float out[4];
 #pragma unroll
   for (int k = 0; k < 4; ++k) {
     const float v = in[k];
-    out[k] = 0.5 * v * (1.0 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
+    out[k] = 0.5f * v * (1.0f + tanhf(0.7978845608028654f * (v + 0.044715f * v * v * v)));
   }
   y[i] = make_float4(out[0], out[1], out[2], out[3]);
 }

 torch::Tensor run(torch::Tensor x) {
   auto y = torch::empty_like(x);
   gelu_k<<<x.numel() / 4 / 256, 256>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()),
                                        reinterpret_cast<float4*>(y.data_ptr<float>()));
   return y;
 }
""",
)

CASES = (ROW_SUMS, BANKS_TRANSPOSE, FEW_BLOCKS, DOUBLE_GELU)
