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
    ODD_AND_EVEN,
    DOUBLE_GELU,
    SIXTEEN_EXPONENTIALS,
    NO_TENSOR_CORES,
)
