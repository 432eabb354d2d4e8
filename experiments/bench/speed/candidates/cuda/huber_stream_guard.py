# problem: level1_12_huber_loss
# expected: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

huber_cuda = """
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/macros/Macros.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

C10_LAUNCH_BOUNDS_1(256)
__global__ void huber_kernel(const float* prediction, const float* target, float* loss, int batch,
                             int features, float delta) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  const int row = blockIdx.x * tile.meta_group_size() + tile.meta_group_rank();
  if (row >= batch) return;
  float sum = 0.0f;
  for (int i = tile.thread_rank(); i < features; i += tile.size()) {
    const float e = fabsf(prediction[(size_t)row * features + i] - target[(size_t)row * features + i]);
    sum += e <= delta ? 0.5f * e * e : delta * (e - 0.5f * delta);
  }
  sum = cg::reduce(tile, sum, cg::plus<float>());
  if (tile.thread_rank() == 0) loss[row] = sum / features;
}

at::Tensor huber_loss(at::Tensor prediction, at::Tensor target, double delta) {
  TORCH_CHECK(prediction.sizes().equals(target.sizes()), "shapes differ");
  // On the current stream, said the long way.
  at::cuda::CUDAStream stream = at::cuda::getCurrentCUDAStream(prediction.get_device());
  c10::cuda::CUDAStreamGuard guard(stream);
  auto loss = at::empty({prediction.size(0)}, prediction.options());
  const int batch = prediction.size(0), features = prediction.size(1);
  const int rows_per_block = 256 / 32;
  huber_kernel<<<(batch + rows_per_block - 1) / rows_per_block, 256, 0, stream>>>(
      prediction.data_ptr<float>(), target.data_ptr<float>(), loss.data_ptr<float>(), batch,
      features, static_cast<float>(delta));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return loss;
}
"""

huber = load_inline(
    name="huber_stream_guard",
    cpp_sources="at::Tensor huber_loss(at::Tensor prediction, at::Tensor target, double delta);",
    cuda_sources=huber_cuda,
    functions=["huber_loss"],
    verbose=True,
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, delta: float):
        super().__init__()
        self.delta = delta

    def forward(self, prediction, target):
        return huber.huber_loss(prediction, target, self.delta)
