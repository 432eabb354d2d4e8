"""Faults in how work is cut into blocks and launches, and in what goes through memory between."""

from tests.advice.case import Case
from tests.task import task

ELEMENTWISE = task("return {expression}", x="torch.randn(8192, 4096)")

FEW_BLOCKS = Case(
    name="few_blocks",
    fault="16 blocks for 132 SMs",
    rules=frozenset({"too_few_blocks"}),
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

# z <- z - 0.01 z^3 over and over: arithmetic that no compiler can take together.
DECAY = task(
    """
    z = x
    for _ in range(128):
        z = torch.addcmul(z, z * z, z, value=-0.01)
    return z
    """,
    x="torch.randn({rows}, {columns})",
)

TAIL_WAVE = Case(
    name="tail_wave",
    fault="278 long blocks where 264 run at a time: a second wave of 14",
    rules=frozenset({"tail_wave"}),
    reference=DECAY.format(rows=278, columns=16384),
    cuda=r"""
 __global__ void __launch_bounds__(1024, 2)
 decay_k(const float2* __restrict__ x, float2* __restrict__ y, int span) {
   const size_t base = (size_t)blockIdx.x * span;
   for (int i = threadIdx.x; i < span; i += 1024) {
     float2 z = x[base + i];
 #pragma unroll 4
     for (int step = 0; step < 128; ++step) {
       z.x = fmaf(-0.01f * (z.x * z.x), z.x, z.x);
       z.y = fmaf(-0.01f * (z.y * z.y), z.y, z.y);
     }
     y[base + i] = z;
   }
 }

 torch::Tensor run(torch::Tensor x) {
   auto y = torch::empty_like(x);
-  const int pieces = 1;
+  const int pieces = 8;
   const int rows = x.size(0), span = x.size(1) / 2 / pieces;
   decay_k<<<rows * pieces, 1024>>>(reinterpret_cast<const float2*>(x.data_ptr<float>()),
                                    reinterpret_cast<float2*>(y.data_ptr<float>()), span);
   return y;
 }
""",
)

TINY_BLOCKS = Case(
    name="tiny_blocks",
    fault="blocks of 32 threads: an SM holds no more than 32 of them, half of its warps",
    # The same fault, seen from the block's size or from the limit that it meets.
    rules=frozenset({"small_blocks"}),
    reference=task("return torch.softmax(x, 1)", x="torch.randn(524288, 64)"),
    cuda=r"""
 // A warp a row, two columns a lane.
 __global__ void softmax_k(const float2* __restrict__ x, float2* __restrict__ y) {
   const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
   float2 v = x[i];
   float most = fmaxf(v.x, v.y);
   for (int d = 16; d > 0; d /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, d));
   v = make_float2(__expf(v.x - most), __expf(v.y - most));
   float sum = v.x + v.y;
   for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
   const float scale = 1.f / sum;
   y[i] = make_float2(v.x * scale, v.y * scale);
 }

 torch::Tensor run(torch::Tensor x) {
   auto y = torch::empty_like(x);
-  const int rows_a_block = 1;
+  const int rows_a_block = 8;
   softmax_k<<<x.size(0) / rows_a_block, 32 * rows_a_block>>>(
       reinterpret_cast<const float2*>(x.data_ptr<float>()),
       reinterpret_cast<float2*>(y.data_ptr<float>()));
   return y;
 }
""",
)

UNEVEN_ROWS = Case(
    name="uneven_rows",
    fault="rows get longer with the square of their number, and each block takes 16 neighbours",
    rules=frozenset({"uneven_work"}),
    reference=task(
        """
    rows, columns = x.shape
    i = torch.arange(rows, device=x.device)
    lengths = i * i * columns // (rows * rows) + 1
    inside = torch.arange(columns, device=x.device) < lengths[:, None]
    z = x
    for _ in range(48):
        z = torch.addcmul(z, z * z, z, value=-0.01)
    return torch.where(inside, z, torch.zeros_like(z)).sum(1)
    """,
        x="torch.randn(4224, 8192)",
    ),
    cuda=r"""
 __global__ void __launch_bounds__(1024, 2)
 prefixes_k(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
   __shared__ float parts[32];
   for (int r = 0; r < rows / gridDim.x; ++r) {
-    const int row = blockIdx.x * (rows / gridDim.x) + r;
+    const int row = r * gridDim.x + blockIdx.x;
     const int length = (long long)row * row * columns / ((long long)rows * rows) + 1;
     float sum = 0.f;
     for (int j = threadIdx.x; j < length; j += 1024) {
       float z = x[(size_t)row * columns + j];
 #pragma unroll 8
       for (int step = 0; step < 48; ++step) z = fmaf(-0.01f * (z * z), z, z);
       sum += z;
     }
     for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
     if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
     __syncthreads();
     if (threadIdx.x < 32) {
       sum = parts[threadIdx.x];
       for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
       if (threadIdx.x == 0) y[row] = sum;
     }
     __syncthreads();
   }
 }

 torch::Tensor run(torch::Tensor x) {
   const int rows = x.size(0), columns = x.size(1);
   auto y = torch::empty({rows}, x.options());
   prefixes_k<<<264, 1024>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, columns);
   return y;
 }
""",
)

MANY_LAUNCHES = Case(
    name="many_launches",
    fault="one launch a row, 32 of them",
    rules=frozenset({"launch_bound"}),
    reference=task(
        "return x * scale[:, None] + shift[:, None]",
        x="torch.randn(32, 16384)",
        scale="torch.randn(32)",
        shift="torch.randn(32)",
    ),
    cuda=r"""
 __global__ void scale_rows_k(const float* __restrict__ x, const float* __restrict__ scale,
                              const float* __restrict__ shift, float* __restrict__ y,
                              int columns) {
   const int row = blockIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
   if (j < columns)
     y[(size_t)row * columns + j] = x[(size_t)row * columns + j] * scale[row] + shift[row];
 }

 torch::Tensor run(torch::Tensor x, torch::Tensor scale, torch::Tensor shift) {
   const int rows = x.size(0), columns = x.size(1);
   auto y = torch::empty_like(x);
-  for (int row = 0; row < rows; ++row)
-    scale_rows_k<<<dim3((columns + 255) / 256, 1), 256>>>(
-        x.data_ptr<float>() + (size_t)row * columns, scale.data_ptr<float>() + row,
-        shift.data_ptr<float>() + row, y.data_ptr<float>() + (size_t)row * columns, columns);
+  scale_rows_k<<<dim3((columns + 255) / 256, rows), 256>>>(
+      x.data_ptr<float>(), scale.data_ptr<float>(), shift.data_ptr<float>(), y.data_ptr<float>(),
+      columns);
   return y;
 }
""",
)

CASES = (
    FEW_BLOCKS,
    TAIL_WAVE,
    TINY_BLOCKS,
    UNEVEN_ROWS,
    MANY_LAUNCHES,
)
