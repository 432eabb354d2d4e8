"""Faults in how latency is hidden: warps on an SM, loads in flight, waits for each other."""

from evaluator.settings import Precision
from tests.advice.case import Case
from tests.task import task

SCALAR_HALVES = Case(
    name="scalar_halves",
    fault="fp16 loaded and stored one element a thread, 2 bytes at a time",
    rules=frozenset({"scalar_access"}),
    precision=Precision.FP16,
    reference="""
import torch

class Model(torch.nn.Module):
    def forward(self, a, b, c):
        return torch.relu(a * b + c)

def get_inputs():
    return [torch.randn(8192, 4096) for _ in range(3)]

def get_init_inputs():
    return []
""",
    cuda=r"""
 #include <cuda_fp16.h>

 __device__ __half one(__half a, __half b, __half c) {
   return __float2half(fmaxf(__half2float(a) * __half2float(b) + __half2float(c), 0.f));
 }

-__global__ void relu_k(const __half* __restrict__ a, const __half* __restrict__ b,
-                       const __half* __restrict__ c, __half* __restrict__ y) {
-  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
-  y[i] = one(a[i], b[i], c[i]);
-}
+struct alignas(16) Eight {
+  __half at[8];
+};
+__global__ void relu_k(const Eight* __restrict__ a, const Eight* __restrict__ b,
+                       const Eight* __restrict__ c, Eight* __restrict__ y) {
+  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
+  const Eight p = a[i], q = b[i], r = c[i];
+  Eight s;
+#pragma unroll
+  for (int k = 0; k < 8; ++k) s.at[k] = one(p.at[k], q.at[k], r.at[k]);
+  y[i] = s;
+}

 torch::Tensor run(torch::Tensor a, torch::Tensor b, torch::Tensor c) {
   auto y = torch::empty_like(a);
-  using Item = __half;
+  using Item = Eight;
   relu_k<<<y.numel() * 2 / sizeof(Item) / 256, 256>>>(
       reinterpret_cast<const Item*>(a.data_ptr<at::Half>()),
       reinterpret_cast<const Item*>(b.data_ptr<at::Half>()),
       reinterpret_cast<const Item*>(c.data_ptr<at::Half>()),
       reinterpret_cast<Item*>(y.data_ptr<at::Half>()));
   return y;
 }
""",
)

REGISTER_WALK = Case(
    name="register_walk",
    fault="192 values a thread are kept in registers where a running sum would do",
    rules=frozenset({"occupancy_registers"}),
    reference=task(
        """
    place, values = start, []
    for _ in range(48):
        values.append(table[place])
        place = following[following[place]]
    return torch.logsumexp(torch.stack(values), 0)
    """,
        table="torch.randn(262144, 128)",
        following="torch.randint(0, 262144, (262144,))",
        start="torch.randint(0, 262144, (8448,))",
    ),
    cuda=r"""
 #include <cstdint>

 __device__ float4 larger(float4 a, float4 b) {
   return make_float4(fmaxf(a.x, b.x), fmaxf(a.y, b.y), fmaxf(a.z, b.z), fmaxf(a.w, b.w));
 }
 __device__ float4 exp_of_difference(float4 a, float4 b) {
   return make_float4(__expf(a.x - b.x), __expf(a.y - b.y), __expf(a.z - b.z), __expf(a.w - b.w));
 }

 // A warp walks from row to row of the table, a lane for 4 of the 128 columns.
 __global__ void __launch_bounds__(128)
 walk_k(const float4* __restrict__ table, const int64_t* __restrict__ following,
        const int64_t* __restrict__ start, float4* __restrict__ y) {
   const int walker = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
   int place = start[walker];
   float4 most = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
   float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
-  float4 values[48];
-#pragma unroll
-  for (int step = 0; step < 48; ++step) {
-    values[step] = table[place * 32 + lane];
-    place = following[following[place]];
-  }
-#pragma unroll
-  for (int step = 0; step < 48; ++step) most = larger(most, values[step]);
-#pragma unroll
-  for (int step = 0; step < 48; ++step) {
-    const float4 add = exp_of_difference(values[step], most);
-    sum = make_float4(sum.x + add.x, sum.y + add.y, sum.z + add.z, sum.w + add.w);
-  }
+  for (int step = 0; step < 48; ++step) {
+    const float4 value = table[place * 32 + lane];
+    place = following[following[place]];
+    const float4 now = larger(most, value);
+    const float4 keep = exp_of_difference(most, now), add = exp_of_difference(value, now);
+    sum = make_float4(sum.x * keep.x + add.x, sum.y * keep.y + add.y, sum.z * keep.z + add.z,
+                      sum.w * keep.w + add.w);
+    most = now;
+  }
   y[walker * 32 + lane] = make_float4(most.x + logf(sum.x), most.y + logf(sum.y),
                                       most.z + logf(sum.z), most.w + logf(sum.w));
 }

 torch::Tensor run(torch::Tensor table, torch::Tensor following, torch::Tensor start) {
   const int walkers = start.size(0);
   auto y = torch::empty({walkers, 128}, table.options());
   walk_k<<<walkers / 4, 128>>>(reinterpret_cast<const float4*>(table.data_ptr<float>()),
                                following.data_ptr<int64_t>(), start.data_ptr<int64_t>(),
                                reinterpret_cast<float4*>(y.data_ptr<float>()));
   return y;
 }
""",
)

SHARED_TO_SPARE = Case(
    name="shared_to_spare",
    fault="100 KiB of shared memory a block of 128 threads, of which 4 KiB are used",
    rules=frozenset({"occupancy_shared"}),
    reference=task(
        "return x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-6)", x="torch.randn(32768, 1024)"
    ),
    cuda=r"""
 __global__ void rms_norm_k(const float4* __restrict__ x, float4* __restrict__ y, int columns) {
   extern __shared__ float4 row[];
   __shared__ float parts[4];
   const size_t base = (size_t)blockIdx.x * columns / 4;
   float sum = 0.f;
   for (int j = threadIdx.x; j < columns / 4; j += 128) {
     const float4 v = x[base + j];
     row[j] = v;
     sum += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
   }
   for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
   if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
   __syncthreads();
   const float scale = rsqrtf((parts[0] + parts[1] + parts[2] + parts[3]) / columns + 1e-6f);
   for (int j = threadIdx.x; j < columns / 4; j += 128) {
     const float4 v = row[j];
     y[base + j] = make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale);
   }
 }

 torch::Tensor run(torch::Tensor x) {
   const int columns = x.size(1);
   auto y = torch::empty_like(x);
-  const int bytes = 100 * 1024;  // room for rows of up to 25600 columns
+  const int bytes = columns * sizeof(float);
   cudaFuncSetAttribute(rms_norm_k, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
   rms_norm_k<<<x.size(0), 128, bytes>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()),
                                         reinterpret_cast<float4*>(y.data_ptr<float>()), columns);
   return y;
 }
""",
)

SORT_SPILLS = Case(
    name="sort_spills",
    fault="__launch_bounds__(256, 8) leaves 32 registers for 64 values: they spill",
    rules=frozenset({"register_spills"}),
    reference=task("return torch.sort(x, 0).values", x="torch.randn(64, 524288)"),
    cuda=r"""
 // A bitonic network over the 64 values of a column.
-__global__ void __launch_bounds__(256, 8)
+__global__ void __launch_bounds__(256)
 sort_k(const float* __restrict__ x, float* __restrict__ y, int n) {
   const int column = blockIdx.x * blockDim.x + threadIdx.x;
   float v[64];
 #pragma unroll
   for (int i = 0; i < 64; ++i) v[i] = x[(size_t)i * n + column];
 #pragma unroll
   for (int log_k = 1; log_k <= 6; ++log_k) {
 #pragma unroll
     for (int log_j = log_k - 1; log_j >= 0; --log_j) {
 #pragma unroll
       for (int i = 0; i < 64; ++i) {
         const int other = i ^ (1 << log_j);
         if (other > i) {
           const float low = fminf(v[i], v[other]), high = fmaxf(v[i], v[other]);
           const bool up = (i & (1 << log_k)) == 0;
           v[i] = up ? low : high;
           v[other] = up ? high : low;
         }
       }
     }
   }
 #pragma unroll
   for (int i = 0; i < 64; ++i) y[(size_t)i * n + column] = v[i];
 }

 torch::Tensor run(torch::Tensor x) {
   const int n = x.size(1);
   auto y = torch::empty_like(x);
   sort_k<<<n / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
   return y;
 }
""",
)

LOCAL_COUNTS = Case(
    name="local_counts",
    fault="each thread counts in an array of its own whose index is data: it lies in local memory",
    rules=frozenset({"local_arrays"}),
    reference=task(
        """
    bins = (x * 16).long()
    return torch.stack([(bins == k).sum(0) for k in range(16)]).to(x.dtype)
    """,
        x="torch.rand(128, 524288)",
    ),
    cuda=r"""
 __global__ void __launch_bounds__(256)
 counts_k(const float* __restrict__ x, float* __restrict__ y, int rows, int n) {
   const int column = blockIdx.x * blockDim.x + threadIdx.x;
-  int counts[16] = {};
-  for (int row = 0; row < rows; ++row) ++counts[(int)(x[(size_t)row * n + column] * 16.f)];
+  __shared__ int all[16][256];  // a thread's counters all lie in one bank
+  for (int k = 0; k < 16; ++k) all[k][threadIdx.x] = 0;
+#pragma unroll 8
+  for (int row = 0; row < rows; ++row)
+    ++all[(int)(x[(size_t)row * n + column] * 16.f)][threadIdx.x];
   for (int k = 0; k < 16; ++k)
-    y[(size_t)k * n + column] = counts[k];
+    y[(size_t)k * n + column] = all[k][threadIdx.x];
 }

 torch::Tensor run(torch::Tensor x) {
   const int rows = x.size(0), n = x.size(1);
   auto y = torch::empty({16, n}, x.options());
   counts_k<<<n / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, n);
   return y;
 }
""",
)

BARRIER_SCAN = Case(
    name="barrier_scan",
    fault="a scan in shared memory: twenty barriers of 1024 threads for each row",
    rules=frozenset({"barrier_wait"}),
    reference=task("return torch.cumsum(x, 1)", x="torch.randn(8448, 4096)"),
    cuda=r"""
 __device__ float4 running(float4 v) {
   v.y += v.x;
   v.z += v.y;
   v.w += v.z;
   return v;
 }
 __device__ float4 plus(float before, float4 v) {
   return make_float4(before + v.x, before + v.y, before + v.z, before + v.w);
 }

-// A block a row, four neighbours a thread.
-__global__ void __launch_bounds__(1024)
-scan_k(const float4* __restrict__ x, float4* __restrict__ y) {
-  __shared__ float s[1024];
-  const int t = threadIdx.x;
-  const size_t at = (size_t)blockIdx.x * 1024 + t;
-  const float4 v = running(x[at]);
-  s[t] = v.w;
-  __syncthreads();
-  for (int d = 1; d < 1024; d *= 2) {
-    const float before = t >= d ? s[t - d] : 0.f;
-    __syncthreads();
-    s[t] += before;
-    __syncthreads();
-  }
-  y[at] = plus(s[t] - v.w, v);
-}
+// A warp a row, four neighbours a lane, 128 columns a step: nobody waits for another warp.
+__global__ void __launch_bounds__(256)
+scan_k(const float4* __restrict__ x, float4* __restrict__ y) {
+  const int lane = threadIdx.x % 32;
+  const size_t base = ((size_t)blockIdx.x * 8 + threadIdx.x / 32) * 1024;
+  float carry = 0.f;
+#pragma unroll 1
+  for (int k0 = 0; k0 < 1024; k0 += 4 * 32) {
+    float4 v[4];
+#pragma unroll
+    for (int k = 0; k < 4; ++k) v[k] = running(x[base + k0 + k * 32 + lane]);
+#pragma unroll
+    for (int k = 0; k < 4; ++k) {
+      float sum = v[k].w;
+      for (int d = 1; d < 32; d *= 2) {
+        const float before = __shfl_up_sync(0xffffffffu, sum, d);
+        if (lane >= d) sum += before;
+      }
+      y[base + k0 + k * 32 + lane] = plus(carry + sum - v[k].w, v[k]);
+      carry += __shfl_sync(0xffffffffu, sum, 31);
+    }
+  }
+}

 torch::Tensor run(torch::Tensor x) {
   const int rows = x.size(0);
   auto y = torch::empty_like(x);
-  scan_k<<<rows, 1024>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()),
+  scan_k<<<rows / 8, 256>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()),
       reinterpret_cast<float4*>(y.data_ptr<float>()));
   return y;
 }
""",
)

SERIAL_BAGS = Case(
    name="serial_bags",
    fault="a row, its sum, then the next row: one load in flight for each warp",
    rules=frozenset({"memory_latency"}),
    reference=task(
        "return table[bags].sum(1)",
        table="torch.randn(524288, 64)",
        bags="torch.randint(0, 524288, (5120, 128))",
    ),
    cuda=r"""
 #include <cstdint>

 // A warp a bag of 128 rows, a lane for two of the 64 columns; 32 indices at a time.
 __global__ void __launch_bounds__(256)
 bags_k(const float2* __restrict__ table, const int64_t* __restrict__ bags,
        float2* __restrict__ y) {
   const int bag = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
   float2 sum = make_float2(0.f, 0.f);
   for (int k0 = 0; k0 < 128; k0 += 32) {
     const int mine = bags[bag * 128 + k0 + lane];
-#pragma unroll 1
+#pragma unroll
     for (int k = 0; k < 32; ++k) {
       const float2 v = table[(size_t)__shfl_sync(0xffffffffu, mine, k) * 32 + lane];
       sum.x += v.x;
       sum.y += v.y;
     }
   }
   y[bag * 32 + lane] = sum;
 }

 torch::Tensor run(torch::Tensor table, torch::Tensor bags) {
   const int count = bags.size(0);
   auto y = torch::empty({count, 64}, table.options());
   bags_k<<<count / 8, 256>>>(reinterpret_cast<const float2*>(table.data_ptr<float>()),
                              bags.data_ptr<int64_t>(),
                              reinterpret_cast<float2*>(y.data_ptr<float>()));
   return y;
 }
""",
)

CASES = (
    SCALAR_HALVES,
    REGISTER_WALK,
    SHARED_TO_SPARE,
    SORT_SPILLS,
    LOCAL_COUNTS,
    BARRIER_SCAN,
    SERIAL_BAGS,
)
