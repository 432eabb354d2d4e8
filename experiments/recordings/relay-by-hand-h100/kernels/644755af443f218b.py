# plan: one kernel; a warp owns a row and reads it in pieces with a running maximum, so no barrier while the next piece is under way
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
// A warp a row, in eight pieces of 512 values with a running maximum: nothing waits at a barrier.
__global__ void __launch_bounds__(256) mean_loss_k(const float* __restrict__ x, const int64_t* __restrict__ target,
                                                   double* __restrict__ partial, unsigned* __restrict__ done,
                                                   float* __restrict__ out, int rows, int columns) {
  constexpr int V = 4;
  __shared__ double parts[8];
  __shared__ bool last;
  const int t = threadIdx.x, lane = t & 31, warp = t >> 5, step = gridDim.x * 8;
  double loss = 0.0;
  float4 next[V];
  int row = blockIdx.x * 8 + warp;
  const float4* in = reinterpret_cast<const float4*>(x + (size_t)row * columns) + lane;
  if (row < rows) {
#pragma unroll
    for (int i = 0; i < V; ++i) next[i] = __ldcs(in + 32 * i);
  }
  for (; row < rows; row += step) {
    const float right = lane == 0 ? __ldg(x + (size_t)row * columns + target[row]) : 0.f;
    float m = -INFINITY, s = 0.f;
    for (int piece = 0; piece < 4096 / (128 * V); ++piece) {
      float4 v[V];
#pragma unroll
      for (int i = 0; i < V; ++i) v[i] = next[i];
      const bool ends = piece == 4096 / (128 * V) - 1;
      const float4* from = ends ? reinterpret_cast<const float4*>(x + (size_t)(row + step) * columns) + lane : in + 32 * V * (piece + 1);
      if (!ends || row + step < rows) {
#pragma unroll
        for (int i = 0; i < V; ++i) next[i] = __ldcs(from + 32 * i);
      }
      if (ends) in = from;
      float top = m;
#pragma unroll
      for (int i = 0; i < V; ++i) top = fmaxf(top, fmaxf(fmaxf(v[i].x, v[i].y), fmaxf(v[i].z, v[i].w)));
      s *= __expf(m - top);
      m = top;
#pragma unroll
      for (int i = 0; i < V; ++i) s += (__expf(v[i].x - m) + __expf(v[i].y - m)) + (__expf(v[i].z - m) + __expf(v[i].w - m));
    }
    float top = m;
    for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
    s *= __expf(m - top);
    for (int d = 16; d > 0; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    loss += (double)(logf(s) + (top - right));
  }
  if (lane == 0) parts[warp] = loss;
  __syncthreads();
  if (t == 0) {
    double sum = 0.0;
    for (int i = 0; i < 8; ++i) sum += parts[i];
    partial[blockIdx.x] = sum;
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
    name="cross_entropy_warps",
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
            blocks = 4 * torch.cuda.get_device_properties(predictions.device).multi_processor_count
            self.scratch = (
                torch.empty(blocks, dtype=torch.float64, device=predictions.device),
                torch.zeros(1, dtype=torch.int32, device=predictions.device),
            )
        return kernels.cross_entropy(predictions.contiguous(), targets.contiguous(), *self.scratch)
