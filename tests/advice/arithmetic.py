"""Faults in what is computed: which instructions, by how many lanes, on which units."""

from evaluator.settings import Precision
from tests.advice.case import Case
from tests.advice.launch import ELEMENTWISE
from tests.task import task

ODD_AND_EVEN = Case(
    name="odd_and_even",
    fault="odd and even lanes run different loops, one after the other",
    rules=frozenset({"divergence"}),
    reference=task(
        """
    a, b = x[:, 0::2], x[:, 1::2]
    for _ in range(64):
        a = torch.addcmul(a, a * a, a, value=-0.01)
        b = torch.addcmul(b, b.abs(), b, value=-0.02)
    return torch.stack((a, b), -1).flatten(1)
    """,
        x="torch.randn(4096, 4096)",
    ),
    cuda=r"""
 __device__ float even(float z) {
 #pragma unroll 8
   for (int step = 0; step < 64; ++step) z = fmaf(-0.01f * (z * z), z, z);
   return z;
 }
 __device__ float odd(float z) {
 #pragma unroll 8
   for (int step = 0; step < 64; ++step) z = fmaf(-0.02f * fabsf(z), z, z);
   return z;
 }

-__global__ void __launch_bounds__(256) decay_k(const float* __restrict__ x,
-                                               float* __restrict__ y, int n) {
-  const int i = blockIdx.x * blockDim.x + threadIdx.x;
-  if (i >= n) return;
-  if (i % 2 == 0)
-    y[i] = even(x[i]);
-  else
-    y[i] = odd(x[i]);
-}
+__global__ void __launch_bounds__(256) decay_k(const float2* __restrict__ x,
+                                               float2* __restrict__ y, int n) {
+  const int i = blockIdx.x * blockDim.x + threadIdx.x;
+  if (i >= n) return;
+  const float2 v = x[i];
+  y[i] = make_float2(even(v.x), odd(v.y));
+}

 torch::Tensor run(torch::Tensor x) {
   auto y = torch::empty_like(x);
-  using Item = float;
+  using Item = float2;
   const int n = x.numel() * sizeof(float) / sizeof(Item);
   decay_k<<<(n + 255) / 256, 256>>>(reinterpret_cast<const Item*>(x.data_ptr<float>()),
                                     reinterpret_cast<Item*>(y.data_ptr<float>()), n);
   return y;
 }
""",
)

SERIAL_POLYNOMIAL = Case(
    name="serial_polynomial",
    fault="one chain of 512 dependent multiply-adds at a time, by one warp for each scheduler",
    rules=frozenset({"dependency_chain"}),
    reference=task(
        """
    y = torch.zeros_like(x)
    for k in range(512):
        y = torch.addcmul(w[k], y, x)
    return y
    """,
        x="torch.rand(132 * 128 * 64) * 1.8 - 0.9",
        w="torch.randn(512)",
    ),
    cuda=r"""
 __global__ void __launch_bounds__(128)
 polynomial_k(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y,
              int n) {
   __shared__ float coefficients[512];
   for (int k = threadIdx.x; k < 512; k += 128) coefficients[k] = w[k];
   __syncthreads();
   const int stride = gridDim.x * blockDim.x;
-  constexpr int AT_ONCE = 1;
+  constexpr int AT_ONCE = 8;
 #pragma unroll 1
   for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += AT_ONCE * stride) {
     float at[AT_ONCE], sum[AT_ONCE] = {};
 #pragma unroll
     for (int p = 0; p < AT_ONCE; ++p) at[p] = x[i + p * stride];
 #pragma unroll 16
     for (int k = 0; k < 512; ++k)
 #pragma unroll
       for (int p = 0; p < AT_ONCE; ++p) sum[p] = fmaf(sum[p], at[p], coefficients[k]);
 #pragma unroll
     for (int p = 0; p < AT_ONCE; ++p) y[i + p * stride] = sum[p];
   }
 }

 torch::Tensor run(torch::Tensor x, torch::Tensor w) {
   auto y = torch::empty_like(x);
   polynomial_k<<<132, 128>>>(x.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(),
                              x.numel());
   return y;
 }
""",
)

DOUBLE_GELU = Case(
    name="double_gelu",
    fault="constants without an f: GELU of fp32 in fp64",
    rules=frozenset({"fp64_arithmetic"}),
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

SIXTEEN_EXPONENTIALS = Case(
    name="sixteen_exponentials",
    fault="the product of 16 exponentials where one of the sum would do",
    rules=frozenset({"special_functions"}),
    reference=task(
        """
    y = torch.ones_like(x)
    for k in range(1, 17):
        y = y * torch.exp(x * (-k / 64))
    return y
    """,
        x="torch.randn(8192, 4096)",
    ),
    cuda=r"""
 __device__ float one(float v) {
-  float product = 1.f;
-#pragma unroll
-  for (int k = 1; k <= 16; ++k) product *= __expf(v * (-k / 64.f));
-  return product;
+  return __expf(v * (-136 / 64.f));
 }

 __global__ void product_k(const float4* __restrict__ x, float4* __restrict__ y) {
   const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
   const float4 v = x[i];
   y[i] = make_float4(one(v.x), one(v.y), one(v.z), one(v.w));
 }

 torch::Tensor run(torch::Tensor x) {
   auto y = torch::empty_like(x);
   product_k<<<x.numel() / 4 / 256, 256>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()),
                                           reinterpret_cast<float4*>(y.data_ptr<float>()));
   return y;
 }
""",
)

DIVIDED_INDICES = Case(
    name="divided_indices",
    fault="four coordinates of every element by 64-bit division and modulo",
    rules=frozenset({"integer_arithmetic"}),
    reference="""
import torch

class Model(torch.nn.Module):
    def forward(self, x, a, b, c, d):
        return (x * a[:, None, None, None] + b[:, None, None]) * c[:, None] + d

def get_inputs():
    return [torch.randn(16, 128, 128, 128), torch.randn(16)] + [torch.randn(128) for _ in range(3)]

def get_init_inputs():
    return []
""",
    cuda=r"""
 #include <cstdint>

-__global__ void broadcast_k(const float* __restrict__ x, const float* __restrict__ a,
-                            const float* __restrict__ b, const float* __restrict__ c,
-                            const float* __restrict__ d, float* __restrict__ y, int64_t channels,
-                            int64_t height, int64_t width) {
-  const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
-  const int64_t w = i % width, h = (i / width) % height;
-  const int64_t channel = (i / (width * height)) % channels;
-  const int64_t n = i / (width * height * channels);
-  y[i] = (x[i] * a[n] + b[channel]) * c[h] + d[w];
-}
+// A warp a line of 128, 8 lines a block: the grid gives the other coordinates.
+__global__ void broadcast_k(const float4* __restrict__ x, const float* __restrict__ a,
+                            const float* __restrict__ b, const float* __restrict__ c,
+                            const float4* __restrict__ d, float4* __restrict__ y) {
+  const int h = blockIdx.x * 8 + threadIdx.y, channel = blockIdx.y, n = blockIdx.z;
+  const size_t i = (((size_t)n * gridDim.y + channel) * gridDim.x * 8 + h) * 32 + threadIdx.x;
+  const float4 v = x[i], add = d[threadIdx.x];
+  const float p = a[n], q = b[channel], r = c[h];
+  y[i] = make_float4((v.x * p + q) * r + add.x, (v.y * p + q) * r + add.y,
+                     (v.z * p + q) * r + add.z, (v.w * p + q) * r + add.w);
+}

 torch::Tensor run(torch::Tensor x, torch::Tensor a, torch::Tensor b, torch::Tensor c,
                   torch::Tensor d) {
   auto y = torch::empty_like(x);
-  broadcast_k<<<x.numel() / 256, 256>>>(
-      x.data_ptr<float>(), a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(),
-      d.data_ptr<float>(), y.data_ptr<float>(), x.size(1), x.size(2), x.size(3));
+  broadcast_k<<<dim3(x.size(2) / 8, x.size(1), x.size(0)), dim3(32, 8)>>>(
+      reinterpret_cast<const float4*>(x.data_ptr<float>()), a.data_ptr<float>(),
+      b.data_ptr<float>(), c.data_ptr<float>(),
+      reinterpret_cast<const float4*>(d.data_ptr<float>()),
+      reinterpret_cast<float4*>(y.data_ptr<float>()));
   return y;
 }
""",
)

ONE_COUNTER = Case(
    name="one_counter",
    fault="every thread adds to one address by an atomic",
    rules=frozenset({"atomics_contention"}),
    reference=task("return (x > 0).to(x.dtype).sum().reshape(1)", x="torch.randn(8388608)"),
    cuda=r"""
 // Whole numbers below 2^24: every order of adding is exact.
 __global__ void positive_k(const float* __restrict__ x, float* __restrict__ count, int n) {
-  const int i = blockIdx.x * blockDim.x + threadIdx.x;
-  if (i < n && x[i] > 0.f) atomicAdd(count, 1.f);
+  __shared__ float parts[8];
+  float sum = 0.f;
+#pragma unroll 4
+  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
+    sum += x[i] > 0.f ? 1.f : 0.f;
+  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
+  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
+  __syncthreads();
+  if (threadIdx.x == 0) {
+    for (int k = 1; k < 8; ++k) sum += parts[k];
+    atomicAdd(count, sum);
+  }
 }

 torch::Tensor run(torch::Tensor x) {
   const int n = x.numel();
   auto count = torch::zeros({1}, x.options());
-  positive_k<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), count.data_ptr<float>(), n);
+  positive_k<<<132 * 8, 256>>>(x.data_ptr<float>(), count.data_ptr<float>(), n);
   return count;
 }
""",
)

GLOBAL_HISTOGRAM = Case(
    name="global_histogram",
    fault="a histogram of 16 bins by atomics in global memory",
    rules=frozenset({"atomics_contention"}),
    reference=task(
        """
    bins = (x * 16).long()
    return torch.stack([(bins == k).sum() for k in range(16)]).to(x.dtype)
    """,
        x="torch.rand(16777216)",
    ),
    cuda=r"""
 // Whole numbers below 2^24: every order of adding is exact.
 __global__ void histogram_k(const float* __restrict__ x, float* __restrict__ counts, int n) {
-  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
-    atomicAdd(&counts[(int)(x[i] * 16.f)], 1.f);
+  __shared__ int own[16][256];  // a column of counters for each thread
+  for (int k = 0; k < 16; ++k) own[k][threadIdx.x] = 0;
+#pragma unroll 4
+  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
+    ++own[(int)(x[i] * 16.f)][threadIdx.x];
+  __syncthreads();
+  // 16 threads a bin; each starts elsewhere in its bin, so that their banks differ.
+  const int bin = threadIdx.x / 16, part = threadIdx.x % 16;
+  int sum = 0;
+  for (int k = 0; k < 16; ++k) sum += own[bin][(threadIdx.x + k * 16) % 256];
+  for (int d = 8; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
+  if (part == 0) atomicAdd(&counts[bin], (float)sum);
 }

 torch::Tensor run(torch::Tensor x) {
   auto counts = torch::zeros({16}, x.options());
   histogram_k<<<132 * 8, 256>>>(x.data_ptr<float>(), counts.data_ptr<float>(), x.numel());
   return counts;
 }
""",
)

NO_TENSOR_CORES = Case(
    name="no_tensor_cores",
    fault="an fp16 matrix product by fp32 multiply-adds",
    rules=frozenset({"no_tensor_cores"}),
    precision=Precision.FP16,
    reference=task("return a @ b", a="torch.randn(2048, 2048)", b="torch.randn(2048, 2048)"),
    cuda=r"""
 #include <cuda_fp16.h>
+#include <mma.h>

 // 64 x 64 outputs a block, 32 steps of the depth at a time through shared memory.
 __global__ void __launch_bounds__(256)
 gemm_k(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ c, int n,
        int depth) {
   __shared__ __align__(32) __half as[64][48], bs[32][80];
   const int t = threadIdx.x, row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
-  const int ty = t / 16 * 4, tx = t % 16 * 4;
-  float sum[4][4] = {};
+  namespace wmma = nvcuda::wmma;
+  // Eight warps, 16 x 32 outputs each.
+  const int ty = t / 64 * 16, tx = t / 32 % 2 * 32;
+  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2];
+  for (int v = 0; v < 2; ++v) wmma::fill_fragment(sum[v], 0.f);
+#pragma unroll 1
   for (int k0 = 0; k0 < depth; k0 += 32) {
     *reinterpret_cast<uint4*>(&as[t / 4][t % 4 * 8]) = *reinterpret_cast<const uint4*>(
         a + (size_t)(row0 + t / 4) * depth + k0 + t % 4 * 8);
     *reinterpret_cast<uint4*>(&bs[t / 8][t % 8 * 8]) = *reinterpret_cast<const uint4*>(
         b + (size_t)(k0 + t / 8) * n + column0 + t % 8 * 8);
     __syncthreads();
-#pragma unroll
-    for (int k = 0; k < 32; ++k) {
-      float p[4], q[4];
-      for (int u = 0; u < 4; ++u) p[u] = __half2float(as[ty + u][k]);
-      for (int v = 0; v < 4; ++v) q[v] = __half2float(bs[k][tx + v]);
-      for (int u = 0; u < 4; ++u)
-        for (int v = 0; v < 4; ++v) sum[u][v] += p[u] * q[v];
-    }
+#pragma unroll
+    for (int k = 0; k < 32; k += 16) {
+      wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> p;
+      wmma::load_matrix_sync(p, &as[ty][k], 48);
+      for (int v = 0; v < 2; ++v) {
+        wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> q;
+        wmma::load_matrix_sync(q, &bs[k][tx + v * 16], 80);
+        wmma::mma_sync(sum[v], p, q, sum[v]);
+      }
+    }
     __syncthreads();
   }
-  for (int u = 0; u < 4; ++u)
-    for (int v = 0; v < 4; ++v)
-      c[(size_t)(row0 + ty + u) * n + column0 + tx + v] = __float2half(sum[u][v]);
+  __shared__ __align__(32) float out[64][72];
+  for (int v = 0; v < 2; ++v)
+    wmma::store_matrix_sync(&out[ty][tx + v * 16], sum[v], 72, wmma::mem_row_major);
+  __syncthreads();
+  for (int e = t; e < 64 * 32; e += 256)
+    *reinterpret_cast<__half2*>(c + (size_t)(row0 + e / 32) * n + column0 + e % 32 * 2) =
+        __floats2half2_rn(out[e / 32][e % 32 * 2], out[e / 32][e % 32 * 2 + 1]);
 }

 torch::Tensor run(torch::Tensor a, torch::Tensor b) {
   const int m = a.size(0), depth = a.size(1), n = b.size(1);
   auto c = torch::empty({m, n}, a.options());
   gemm_k<<<dim3(n / 64, m / 64), 256>>>(
       reinterpret_cast<const __half*>(a.data_ptr<at::Half>()),
       reinterpret_cast<const __half*>(b.data_ptr<at::Half>()),
       reinterpret_cast<__half*>(c.data_ptr<at::Half>()), n, depth);
   return c;
 }
""",
)

CASES = (
    ODD_AND_EVEN, SERIAL_POLYNOMIAL, DOUBLE_GELU, SIXTEEN_EXPONENTIALS, DIVIDED_INDICES,
    ONE_COUNTER, GLOBAL_HISTOGRAM, NO_TENSOR_CORES,
)  # fmt: skip
