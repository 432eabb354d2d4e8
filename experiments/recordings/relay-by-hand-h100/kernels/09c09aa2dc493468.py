# plan: one kernel: as many blocks as fit loop over rows with the next row under way; the last block adds their sums
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
__inline__ __device__ float warp_max(float v) {
  for (int d = 16; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
  return v;
}
__inline__ __device__ float warp_sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

__global__ void __launch_bounds__(256) mean_loss_k(const float* __restrict__ x, const int64_t* __restrict__ target,
                                                   double* __restrict__ partial, unsigned* __restrict__ done,
                                                   float* __restrict__ out, int rows, int columns) {
  __shared__ float tops[2][8], sums[2][8];
  __shared__ bool last;
  const int t = threadIdx.x, lane = t & 31, warp = t >> 5;
  double loss = 0.0;
  float4 next[4];
  int row = blockIdx.x, side = 0;
  const float4* in = reinterpret_cast<const float4*>(x + (size_t)row * columns);
  if (row < rows) {
#pragma unroll
    for (int i = 0; i < 4; ++i) next[i] = __ldcs(in + t + 256 * i);
  }
  for (; row < rows; row += gridDim.x, side ^= 1) {
    float4 v[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = next[i];
    const float right = t == 0 ? __ldg(x + (size_t)row * columns + target[row]) : 0.f;
    if (row + gridDim.x < rows) {
      in = reinterpret_cast<const float4*>(x + (size_t)(row + gridDim.x) * columns);
#pragma unroll
      for (int i = 0; i < 4; ++i) next[i] = __ldcs(in + t + 256 * i);
    }
    float m = -INFINITY;
#pragma unroll
    for (int i = 0; i < 4; ++i) m = fmaxf(m, fmaxf(fmaxf(v[i].x, v[i].y), fmaxf(v[i].z, v[i].w)));
    m = warp_max(m);
    float s = 0.f;
#pragma unroll
    for (int i = 0; i < 4; ++i) s += (__expf(v[i].x - m) + __expf(v[i].y - m)) + (__expf(v[i].z - m) + __expf(v[i].w - m));
    s = warp_sum(s);
    if (lane == 0) { tops[side][warp] = m; sums[side][warp] = s; }
    __syncthreads();
    if (t == 0) {
      float top = tops[side][0];
      for (int i = 1; i < 8; ++i) top = fmaxf(top, tops[side][i]);
      float sum = 0.f;
      for (int i = 0; i < 8; ++i) sum += sums[side][i] * __expf(tops[side][i] - top);
      loss += (double)(logf(sum) + (top - right));
    }
  }
  if (t == 0) {
    partial[blockIdx.x] = loss;
    __threadfence();
    last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  double sum = 0.0;
  if (warp == 0) {
    for (int i = lane; i < (int)gridDim.x; i += 32) sum += __ldcg(partial + i);
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (lane == 0) out[0] = (float)(sum / rows);
  }
}

// `done` is 0 before and after each call.
torch::Tensor cross_entropy(torch::Tensor x, torch::Tensor target, torch::Tensor partial, torch::Tensor done) {
  const int rows = x.size(0), columns = x.size(1);
  TORCH_CHECK(columns == 4096, "written for 4096 classes");
  auto out = torch::empty({}, x.options());
  mean_loss_k<<<(int)partial.size(0), 256>>>(x.data_ptr<float>(), target.data_ptr<int64_t>(), partial.data_ptr<double>(),
                                             reinterpret_cast<unsigned*>(done.data_ptr<int>()), out.data_ptr<float>(), rows, columns);
  return out;
}
"""

kernels = load_inline(
    name="cross_entropy_one",
    cpp_sources="torch::Tensor cross_entropy(torch::Tensor x, torch::Tensor target, torch::Tensor partial, torch::Tensor done);",
    cuda_sources=CUDA_SOURCE,
    functions=["cross_entropy"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scratch = None

    def forward(self, predictions, targets):
        if self.scratch is None:
            blocks = 5 * torch.cuda.get_device_properties(predictions.device).multi_processor_count
            self.scratch = (
                torch.empty(blocks, dtype=torch.float64, device=predictions.device),
                torch.zeros(1, dtype=torch.int32, device=predictions.device),
            )
        return kernels.cross_entropy(predictions.contiguous(), targets.contiguous(), *self.scratch)
