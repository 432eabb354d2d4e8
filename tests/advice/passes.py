"""Faults in what is launched after what: data that goes through memory more often than it must."""

from tests.advice.case import Case
from tests.advice.launch import ELEMENTWISE
from tests.task import task

SOFTMAX_PASSES = Case(
    name="softmax_passes",
    fault="softmax in three kernels: the input is read three times",
    # Own kernels one after another over the same data are what makes its traffic redundant.
    rules=frozenset({"redundant_passes", "unfused_kernels"}),
    reference=ELEMENTWISE.format(expression="torch.softmax(x, 1)"),
    cuda=r"""
 __device__ float block_all(float v, bool largest) {
   __shared__ float parts[32];
   for (int d = 16; d > 0; d /= 2) {
     const float other = __shfl_xor_sync(0xffffffffu, v, d);
     v = largest ? fmaxf(v, other) : v + other;
   }
   __syncthreads();
   if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
   __syncthreads();
   v = parts[threadIdx.x % 32 % (blockDim.x / 32)];
   for (int d = blockDim.x / 64; d > 0; d /= 2) {
     const float other = __shfl_xor_sync(0xffffffffu, v, d);
     v = largest ? fmaxf(v, other) : v + other;
   }
   return v;
 }

-// 4096 columns: 512 threads with two float4 each.
-__global__ void row_max_k(const float4* __restrict__ x, float* __restrict__ most) {
-  float m = -INFINITY;
-  for (int i = threadIdx.x; i < 1024; i += 512) {
-    const float4 v = x[(size_t)blockIdx.x * 1024 + i];
-    m = fmaxf(m, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
-  }
-  m = block_all(m, true);
-  if (threadIdx.x == 0) most[blockIdx.x] = m;
-}
-
-__global__ void row_sum_k(const float4* __restrict__ x, const float* __restrict__ most,
-                          float* __restrict__ total) {
-  const float m = most[blockIdx.x];
-  float sum = 0.f;
-  for (int i = threadIdx.x; i < 1024; i += 512) {
-    const float4 v = x[(size_t)blockIdx.x * 1024 + i];
-    sum += (__expf(v.x - m) + __expf(v.y - m)) + (__expf(v.z - m) + __expf(v.w - m));
-  }
-  sum = block_all(sum, false);
-  if (threadIdx.x == 0) total[blockIdx.x] = sum;
-}
-
-__global__ void divide_k(const float4* __restrict__ x, const float* __restrict__ most,
-                         const float* __restrict__ total, float4* __restrict__ y) {
-  const float m = most[blockIdx.x], scale = 1.f / total[blockIdx.x];
-  for (int i = threadIdx.x; i < 1024; i += 512) {
-    const float4 v = x[(size_t)blockIdx.x * 1024 + i];
-    y[(size_t)blockIdx.x * 1024 + i] =
-        make_float4(__expf(v.x - m) * scale, __expf(v.y - m) * scale, __expf(v.z - m) * scale,
-                    __expf(v.w - m) * scale);
-  }
-}
+// 4096 columns: 512 threads hold a row in two float4 each.
+__global__ void softmax_k(const float4* __restrict__ x, float4* __restrict__ y) {
+  float4 v[2];
+  for (int k = 0; k < 2; ++k) v[k] = x[(size_t)blockIdx.x * 1024 + k * 512 + threadIdx.x];
+  float m = -INFINITY, sum = 0.f;
+  for (int k = 0; k < 2; ++k)
+    m = fmaxf(m, fmaxf(fmaxf(v[k].x, v[k].y), fmaxf(v[k].z, v[k].w)));
+  m = block_all(m, true);
+  for (int k = 0; k < 2; ++k) {
+    v[k] = make_float4(__expf(v[k].x - m), __expf(v[k].y - m), __expf(v[k].z - m),
+                       __expf(v[k].w - m));
+    sum += (v[k].x + v[k].y) + (v[k].z + v[k].w);
+  }
+  const float scale = 1.f / block_all(sum, false);
+  for (int k = 0; k < 2; ++k)
+    y[(size_t)blockIdx.x * 1024 + k * 512 + threadIdx.x] =
+        make_float4(v[k].x * scale, v[k].y * scale, v[k].z * scale, v[k].w * scale);
+}

 torch::Tensor run(torch::Tensor x) {
   const int rows = x.size(0);
   auto y = torch::empty_like(x);
   const auto* from = reinterpret_cast<const float4*>(x.data_ptr<float>());
   auto* to = reinterpret_cast<float4*>(y.data_ptr<float>());
-  auto most = torch::empty({rows}, x.options()), total = torch::empty({rows}, x.options());
-  row_max_k<<<rows, 512>>>(from, most.data_ptr<float>());
-  row_sum_k<<<rows, 512>>>(from, most.data_ptr<float>(), total.data_ptr<float>());
-  divide_k<<<rows, 512>>>(from, most.data_ptr<float>(), total.data_ptr<float>(), to);
+  softmax_k<<<rows, 512>>>(from, to);
   return y;
 }
""",
)

FOUR_STATISTICS = Case(
    name="four_statistics",
    fault="one kernel reads the whole input once for each of four statistics",
    rules=frozenset({"redundant_passes"}),
    reference=task(
        "return torch.stack((x.sum(1), (x * x).sum(1), x.amax(1), x.amin(1)))",
        x="torch.randn(2048, 32768)",
    ),
    cuda=r"""
 enum { SUM, SQUARES, MOST, LEAST };
 __device__ float joined(int what, float a, float b) {
   return what == MOST ? fmaxf(a, b) : what == LEAST ? fminf(a, b) : a + b;
 }
 __device__ float first(int what) {
   return what == MOST ? -INFINITY : what == LEAST ? INFINITY : 0.f;
 }
 __device__ float of_four(int what, float4 v) {
   if (what == SQUARES) v = make_float4(v.x * v.x, v.y * v.y, v.z * v.z, v.w * v.w);
   return joined(what, joined(what, v.x, v.y), joined(what, v.z, v.w));
 }
 __device__ void leave(int what, float v, float* y) {
   __shared__ float parts[16];
   for (int d = 16; d > 0; d /= 2) v = joined(what, v, __shfl_xor_sync(0xffffffffu, v, d));
   if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
   __syncthreads();
   v = parts[threadIdx.x % 16];
   for (int d = 8; d > 0; d /= 2) v = joined(what, v, __shfl_xor_sync(0xffffffffu, v, d));
   if (threadIdx.x == 0) y[what * gridDim.x + blockIdx.x] = v;
   __syncthreads();
 }

 __global__ void __launch_bounds__(512)
 statistics_k(const float4* __restrict__ x, float* __restrict__ y, int n) {
   const float4* from = x + (size_t)blockIdx.x * n;
-  const int what = blockIdx.y;
-  float v = first(what);
-  for (int i = threadIdx.x; i < n; i += 512) v = joined(what, v, of_four(what, from[i]));
-  leave(what, v, y);
+  float v[4];
+  for (int what = 0; what < 4; ++what) v[what] = first(what);
+  for (int i = threadIdx.x; i < n; i += 512) {
+    const float4 given = from[i];
+#pragma unroll
+    for (int what = 0; what < 4; ++what) v[what] = joined(what, v[what], of_four(what, given));
+  }
+#pragma unroll
+  for (int what = 0; what < 4; ++what) leave(what, v[what], y);
 }

 torch::Tensor run(torch::Tensor x) {
   const int rows = x.size(0), n = x.size(1) / 4;
   auto y = torch::empty({4, rows}, x.options());
-  const dim3 grid(rows, 4);
+  const dim3 grid(rows);
   statistics_k<<<grid, 512>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()),
                               y.data_ptr<float>(), n);
   return y;
 }
""",
)

AROUND_A_KERNEL = Case(
    name="around_a_kernel",
    fault="PyTorch's own operators before and after a kernel that only scales",
    rules=frozenset({"library_time"}),
    reference=ELEMENTWISE.format(expression="2.0 * torch.tanh(x) * torch.sigmoid(x) + 1.0"),
    cuda=r"""
 __global__ void scale_k(const float4* __restrict__ x, float4* __restrict__ y) {
   const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
   const float4 v = x[i];
-  y[i] = make_float4(2.f * v.x, 2.f * v.y, 2.f * v.z, 2.f * v.w);
+  const float in[4] = {v.x, v.y, v.z, v.w};
+  float out[4];
+  for (int k = 0; k < 4; ++k)
+    out[k] = 2.f * tanhf(in[k]) / (1.f + __expf(-in[k])) + 1.f;
+  y[i] = make_float4(out[0], out[1], out[2], out[3]);
 }

 torch::Tensor run(torch::Tensor x) {
   auto y = torch::empty_like(x);
   scale_k<<<x.numel() / 4 / 256, 256>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()),
                                         reinterpret_cast<float4*>(y.data_ptr<float>()));
   return y;
 }
""",
    forward="""
     def forward(self, x):
-        return ext.run(torch.tanh(x) * torch.sigmoid(x)) + 1.0
+        return ext.run(x)
""",
)

CASES = (
    SOFTMAX_PASSES,
    FOUR_STATISTICS,
    AROUND_A_KERNEL,
)
