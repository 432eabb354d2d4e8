// nvcc -gencode=arch=compute_90a,code=sm_90a -shared -Xcompiler -fPIC kernels.cu -o kernels.so
// cuobjdump --dump-resource-usage kernels.so > usage.txt
// cuobjdump --dump-sass kernels.so | sed 's| */\* 0x[0-9a-f]* \*/$||' | grep -v '^ *$' > sass.txt
// Of each function sass.txt then keeps the first instruction of each form, of spills two FFMA.
#include <cuda_fp16.h>
#include <mma.h>

__global__ void vector_loads(const float4* x, float4* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = x[i];
  y[i] = make_float4(__expf(v.x), v.y + 1.f, v.z * v.z, v.w);
}

__global__ void divides(const float* x, float* y, int n, int columns) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i / columns];
}

extern "C" __global__ void double_constant(const float* x, float* y) {
  y[threadIdx.x] = x[threadIdx.x] * 1.1 + 0.5;
}

__global__ void __maxnreg__(24) spills(const float* x, float* y, int n) {
  float a[24];
#pragma unroll
  for (int i = 0; i < 24; i++) a[i] = x[i * n + threadIdx.x];
  for (int k = 0; k < n; k++) {
#pragma unroll
    for (int i = 0; i < 24; i++) a[i] = a[i] * a[(i + 1) % 24] + x[k];
  }
  float s = 0;
#pragma unroll
  for (int i = 0; i < 24; i++) s += a[i] * i;
  y[threadIdx.x] = s;
}

template <int N>
__global__ void local_array(const int* x, float* y, int n) {
  float a[N];
  for (int i = 0; i < N; i++) a[i] = 0.f;
  for (int k = 0; k < n; k++) a[x[k] % N] += 1.f;
  y[threadIdx.x] = a[n % N];
}
template __global__ void local_array<16>(const int*, float*, int);

namespace {
namespace inner {
__global__ void reduces(const float* x, float* y) {
  __shared__ float tile[4096];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  atomicAdd(y, tile[1023 - threadIdx.x]);
}
}  // namespace inner
}  // namespace
void launch(const float* x, float* y) { inner::reduces<<<1, 1024>>>(x, y); }

__global__ void tensor_cores(const half* a, const half* b, float* c) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, half, row_major> fa;
  fragment<matrix_b, 16, 16, 16, half, col_major> fb;
  fragment<accumulator, 16, 16, 16, float> fc;
  fill_fragment(fc, 0.f);
  load_matrix_sync(fa, a, 16);
  load_matrix_sync(fb, b, 16);
  mma_sync(fc, fa, fb, fc);
  store_matrix_sync(c, fc, 16, mem_row_major);
}
