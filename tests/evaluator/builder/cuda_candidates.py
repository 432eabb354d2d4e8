# ruff: noqa: E501 (models write long lines)
"""CUDA candidates as language models write them: (cpp_sources, cuda_sources, functions, flags)."""

from evaluator.ipc.build_request import BuildRequest

CUDA: dict[str, BuildRequest] = {}


def add(name: str, cpp: str, cuda: str, functions: tuple[str, ...], *flags: str) -> None:
    CUDA[name] = BuildRequest(
        name=name,
        cpp_sources=(cpp,),
        cuda_sources=(cuda,),
        functions=tuple((each, each) for each in functions),
        cuda_cflags=flags,
        with_cuda=True,
    )


add(
    "streams_and_guards",
    "torch::Tensor relu(torch::Tensor x);",
    """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAException.h>
#define CHECK_CUDA(x) TORCH_CHECK(x.is_cuda(), #x " must be a CUDA tensor")
#define CHECK_INPUT(x) CHECK_CUDA(x); TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")

__global__ void relu_kernel(const float4* __restrict__ x, float4* __restrict__ y, int64_t n) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) {
    float4 v = __ldg(x + i);
    v.x = fmaxf(v.x, 0.f); v.y = fmaxf(v.y, 0.f); v.z = fmaxf(v.z, 0.f); v.w = fmaxf(v.w, 0.f);
    y[i] = v;
  }
}
torch::Tensor relu(torch::Tensor x) {
  CHECK_INPUT(x);
  const at::cuda::OptionalCUDAGuard device_guard(device_of(x));
  c10::cuda::CUDAGuard guard(x.device());
  auto y = torch::empty_like(x);
  auto n = x.numel() / 4;
  cudaStream_t stream = at::cuda::getCurrentCUDAStream().stream();
  int sms = at::cuda::getCurrentDeviceProperties()->multiProcessorCount;
  relu_kernel<<<std::min<int64_t>((n + 255) / 256, sms * 32), 256, 0, stream>>>(
      reinterpret_cast<const float4*>(x.data_ptr<float>()), reinterpret_cast<float4*>(y.data_ptr<float>()), n);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  AT_CUDA_CHECK(cudaGetLastError());
  return y;
}
""",
    ("relu",),
    "-O3",
    "-lineinfo",
    "-Xptxas",
    "-v,-O3",
)

add(
    "dispatch_half",
    "torch::Tensor gelu(torch::Tensor x);",
    """
#include <torch/extension.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
template <typename scalar_t>
__global__ void gelu_kernel(const scalar_t* __restrict__ x, scalar_t* __restrict__ y, size_t n) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    float v = static_cast<float>(x[i]);
    y[i] = static_cast<scalar_t>(v * 0.5f * (1.0f + erff(v * 0.70710678f)));
  }
}
torch::Tensor gelu(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int threads = 256;
  const auto blocks = (x.numel() + threads - 1) / threads;
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "gelu_cuda", ([&] {
    gelu_kernel<scalar_t><<<blocks, threads>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.numel());
  }));
  return y;
}
""",
    ("gelu",),
    "-std=c++17",
)

add(
    "packed_accessors",
    "torch::Tensor diag_scale(torch::Tensor a, torch::Tensor b);",
    """
template <typename scalar_t>
__global__ void k(const torch::PackedTensorAccessor32<scalar_t, 1, torch::RestrictPtrTraits> a,
                  const torch::PackedTensorAccessor32<scalar_t, 2, torch::RestrictPtrTraits> b,
                  torch::PackedTensorAccessor32<scalar_t, 2, torch::RestrictPtrTraits> out) {
  const int n = blockIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c < b.size(1)) out[n][c] = a[n] * b[n][c];
}
torch::Tensor diag_scale(torch::Tensor a, torch::Tensor b) {
  auto out = torch::zeros_like(b);
  const dim3 blocks((b.size(1) + 1023) / 1024, b.size(0));
  AT_DISPATCH_FLOATING_TYPES(b.scalar_type(), "diag_scale", ([&] {
    k<scalar_t><<<blocks, 1024>>>(a.packed_accessor32<scalar_t, 1, torch::RestrictPtrTraits>(),
                                  b.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>(),
                                  out.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>());
  }));
  return out;
}
""",
    ("diag_scale",),
)

add(
    "cublas_and_epilogue",
    "torch::Tensor gemm_relu(torch::Tensor a, torch::Tensor b);",
    """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/detail/KernelUtils.h>
#include <cublas_v2.h>
__global__ void relu_(float* x, int64_t n) {
  CUDA_KERNEL_LOOP(i, n) x[i] = x[i] > 0 ? x[i] : 0;
}
torch::Tensor gemm_relu(torch::Tensor a, torch::Tensor b) {
  const int m = a.size(0), k = a.size(1), n = b.size(1);
  auto c = at::empty({m, n}, a.options());
  cublasHandle_t handle = at::cuda::getCurrentCUDABlasHandle();
  const float alpha = 1.0f, beta = 0.0f;
  TORCH_CUDABLAS_CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &alpha, b.data_ptr<float>(), n,
                                   a.data_ptr<float>(), k, &beta, c.data_ptr<float>(), n));
  relu_<<<(c.numel() + 511) / 512, 512, 0, at::cuda::getCurrentCUDAStream()>>>(c.data_ptr<float>(), c.numel());
  return c;
}
""",
    ("gemm_relu",),
)

add(
    "binding_in_cpp",
    """
#include <torch/extension.h>
#include <cuda_runtime.h>
void launch(const float* in, float* out, int n, cudaStream_t stream);
#include <c10/cuda/CUDAStream.h>
torch::Tensor swish(const torch::Tensor& input) {
  auto in = input.contiguous();
  auto out = torch::empty(in.sizes(), in.options());
  launch(in.data_ptr<float>(), out.data_ptr<float>(), static_cast<int>(in.numel()), c10::cuda::getCurrentCUDAStream(in.device().index()));
  return out.view_as(input);
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("swish", &swish, "Swish (CUDA)", py::arg("input")); }
""",
    """
__global__ void swish_kernel(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] / (1.f + __expf(-in[i]));
}
void launch(const float* in, float* out, int n, cudaStream_t stream) {
  swish_kernel<<<(n + 255) / 256, 256, 0, stream>>>(in, out, n);
}
""",
    (),
)

add(
    "stream_guard",
    "torch::Tensor negate(torch::Tensor x);",
    """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAUtils.h>
#include <c10/cuda/CUDAGuard.h>
__global__ void negate_kernel(const torch::PackedTensorAccessor64<float, 1, torch::RestrictPtrTraits> x, float* y) {
  const size_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < x.size(0)) y[i] = -x[i];
}
torch::Tensor negate(torch::Tensor x) {
  auto flat = x.reshape({-1});
  auto y = torch::empty_like(flat);
  cudaStream_t side;
  C10_CUDA_CHECK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  C10_CUDA_CHECK(cudaStreamSynchronize(at::cuda::getCurrentCUDAStream()));
  {
    at::cuda::CUDAStreamGuard guard(at::cuda::getStreamFromExternal(side, x.get_device()));
    TORCH_CHECK(at::cuda::getCurrentCUDAStream() == guard.current_stream().stream());
    negate_kernel<<<(flat.numel() + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        flat.packed_accessor64<float, 1, torch::RestrictPtrTraits>(), y.data_ptr<float>());
    C10_CUDA_CHECK(cudaStreamSynchronize(side));
  }
  TORCH_CHECK(at::cuda::getCurrentCUDAStream().stream() != side);
  C10_CUDA_CHECK(cudaStreamDestroy(side));
  return y.view_as(x);
}
""",
    ("negate",),
)
