// Streams, devices and checks: PyTorch's, asked for through its C shim.
#pragma once

#include <cuda_runtime_api.h>

#include "tensor.h"

extern "C" {
int32_t aoti_torch_get_current_cuda_stream(int32_t device_index, void** stream);
}

namespace c10 {
namespace cuda {
inline namespace refinery_ {
inline void check(cudaError_t error, const char* = "", int = 0) {
  if (error != cudaSuccess) {
    (void)cudaGetLastError();
    throw Error(std::string("CUDA error: ") + cudaGetErrorString(error));
  }
}
inline DeviceIndex current_device() {
  int index = 0;
  check(cudaGetDevice(&index));
  return static_cast<DeviceIndex>(index);
}
inline void set_device(DeviceIndex index) { check(cudaSetDevice(index)); }

class CUDAStream {
 public:
  operator cudaStream_t() const { return stream_; }
  cudaStream_t stream() const { return stream_; }
  DeviceIndex device_index() const { return index_; }

 private:
  CUDAStream(cudaStream_t stream, DeviceIndex index) : stream_(stream), index_(index) {}
  friend CUDAStream getStreamFromExternal(cudaStream_t stream, DeviceIndex index);
  cudaStream_t stream_;
  DeviceIndex index_;
};
inline CUDAStream getStreamFromExternal(cudaStream_t stream, DeviceIndex index) {
  return CUDAStream(stream, index);
}
inline CUDAStream getCurrentCUDAStream(DeviceIndex index = -1) {
  if (index < 0) index = current_device();
  void* stream = nullptr;
  if (aoti_torch_get_current_cuda_stream(index, &stream) != 0) {
    throw Error("could not get the current CUDA stream");
  }
  return getStreamFromExternal(static_cast<cudaStream_t>(stream), index);
}
}  // namespace refinery_
}  // namespace cuda
}  // namespace c10

namespace at {
namespace cuda {
using namespace c10::cuda;
}
}  // namespace at

#define C10_CUDA_CHECK(...) ::c10::cuda::check(__VA_ARGS__)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
