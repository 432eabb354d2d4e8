// Properties of devices and the cuBLAS handle, which is PyTorch's.
#pragma once

#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#define REFINERY_CUBLAS 1
#endif

#include "cuda_stream.h"

#ifdef REFINERY_CUBLAS
extern "C" {
// at::cuda::getCurrentCUDABlasHandle: PyTorch has one of the two, by its version.
__attribute__((weak)) cublasHandle_t refinery_blas_handle() __asm__(
    "_ZN2at4cuda24getCurrentCUDABlasHandleEv");
__attribute__((weak)) cublasHandle_t refinery_blas_handle_set_up(bool) __asm__(
    "_ZN2at4cuda24getCurrentCUDABlasHandleEb");
}
#endif

namespace at {
namespace cuda {
inline namespace refinery_ {
#ifdef REFINERY_CUBLAS
inline cublasHandle_t getCurrentCUDABlasHandle(bool set_up = true) {
  return refinery_blas_handle ? refinery_blas_handle() : refinery_blas_handle_set_up(set_up);
}
#endif
inline const cudaDeviceProp* getDeviceProperties(c10::DeviceIndex index) {
  static cudaDeviceProp* known[128] = {};
  if (index < 0 || known[index] == nullptr) {
    cudaDeviceProp properties;
    c10::cuda::check(cudaGetDeviceProperties(&properties, index));
    known[index] = new cudaDeviceProp(properties);  // for as long as the process lives
  }
  return known[index];
}
inline const cudaDeviceProp* getCurrentDeviceProperties() {
  return getDeviceProperties(c10::cuda::current_device());
}
}  // namespace refinery_
}  // namespace cuda
}  // namespace at

#define AT_CUDA_CHECK(...) C10_CUDA_CHECK(__VA_ARGS__)
#define TORCH_CUDABLAS_CHECK(...)                                                      \
  do {                                                                                 \
    cublasStatus_t refinery_status = (__VA_ARGS__);                                    \
    TORCH_CHECK(refinery_status == CUBLAS_STATUS_SUCCESS,                              \
                "CUDA error: ", cublasGetStatusString(refinery_status));               \
  } while (0)
