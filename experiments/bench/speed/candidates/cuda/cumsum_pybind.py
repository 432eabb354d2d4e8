# problem: level1_20_cumsum
# expected: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Binds itself, and keeps launcher and binding apart.
cpp_source = """
#include <torch/extension.h>

void cumsum_launcher(const float* x, float* y, int64_t rows, int64_t cols, int device);

torch::Tensor cumsum_rows(torch::Tensor x, int64_t dim) {
  TORCH_CHECK(x.dim() == 2 && (dim == 1 || dim == -1), "only the last dimension of a matrix");
  auto in = x.contiguous();
  auto out = torch::empty_like(in);
  cumsum_launcher(in.data_ptr<float>(), out.data_ptr<float>(), in.size(0), in.size(1),
                  in.device().index());
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "running sums";
  m.def("cumsum_rows", &cumsum_rows, "Running sum of each row (CUDA)", py::arg("x"),
        py::arg("dim") = 1);
}
"""

cuda_source = """
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cub/block/block_scan.cuh>

struct Prefix {
  float running;
  __device__ explicit Prefix(float start) : running(start) {}
  __device__ float operator()(float aggregate) {
    const float before = running;
    running += aggregate;
    return before;
  }
};

template <int THREADS>
__global__ void cumsum_kernel(const float* x, float* y, int64_t cols) {
  using Scan = cub::BlockScan<float, THREADS>;
  __shared__ typename Scan::TempStorage storage;
  x += blockIdx.x * cols;
  y += blockIdx.x * cols;
  Prefix prefix(0.0f);
  for (int64_t begin = 0; begin < cols; begin += THREADS) {
    const int64_t c = begin + threadIdx.x;
    float v = c < cols ? x[c] : 0.0f;
    Scan(storage).InclusiveSum(v, v, prefix);
    __syncthreads();
    if (c < cols) y[c] = v;
  }
}

void cumsum_launcher(const float* x, float* y, int64_t rows, int64_t cols, int device) {
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device));
  cumsum_kernel<256><<<rows, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(x, y, cols);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

scan = load_inline(
    name="cumsum_pybind",
    cpp_sources=[cpp_source],
    cuda_sources=[cuda_source],
    verbose=True,
)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return scan.cumsum_rows(x, dim=self.dim)
