// Streams, device guards, checks and the cuBLAS handle: PyTorch's, asked for through its C shim.
#pragma once

#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#define REFINERY_CUBLAS 1
#endif
#include <cuda_runtime_api.h>

#include "tensor.h"

extern "C" {
struct CUDAStreamGuardOpaque;
int32_t aoti_torch_get_current_cuda_stream(int32_t device_index, void** stream);
int32_t aoti_torch_create_cuda_stream_guard(void* stream, int32_t device_index,
                                            CUDAStreamGuardOpaque** guard);
int32_t aoti_torch_delete_cuda_stream_guard(CUDAStreamGuardOpaque* guard);
}

namespace c10 {
inline namespace refinery_ {

inline std::optional<Device> device_of(const at::Tensor& t) {
  return t.defined() ? std::make_optional(t.device()) : std::nullopt;
}

}  // namespace refinery_

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
inline DeviceIndex device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? static_cast<DeviceIndex>(count) : 0;
}
inline void device_synchronize() { check(cudaDeviceSynchronize()); }

class CUDAStream {
 public:
  CUDAStream(cudaStream_t stream, DeviceIndex index) : stream_(stream), index_(index) {}
  operator cudaStream_t() const { return stream_; }
  cudaStream_t stream() const { return stream_; }
  DeviceIndex device_index() const { return index_; }
  Device device() const { return Device(kCUDA, index_); }
  void synchronize() const { check(cudaStreamSynchronize(stream_)); }
  bool query() const { return cudaStreamQuery(stream_) == cudaSuccess; }
  bool operator==(const CUDAStream& o) const { return stream_ == o.stream_; }
  bool operator!=(const CUDAStream& o) const { return stream_ != o.stream_; }

 private:
  cudaStream_t stream_;
  DeviceIndex index_;
};
inline CUDAStream getCurrentCUDAStream(DeviceIndex index = -1) {
  if (index < 0) index = current_device();
  void* stream = nullptr;
  if (aoti_torch_get_current_cuda_stream(index, &stream) != 0) {
    throw Error("could not get the current CUDA stream");
  }
  return CUDAStream(static_cast<cudaStream_t>(stream), index);
}
inline CUDAStream getDefaultCUDAStream(DeviceIndex index = -1) {
  return CUDAStream(nullptr, index < 0 ? current_device() : index);
}
inline CUDAStream getStreamFromExternal(cudaStream_t stream, DeviceIndex index) {
  return CUDAStream(stream, index);
}

class OptionalCUDAGuard {
 public:
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(std::optional<Device> device) {
    if (device) set_index(device->index());
  }
  explicit OptionalCUDAGuard(std::optional<DeviceIndex> index) {
    if (index) set_index(*index);
  }
  explicit OptionalCUDAGuard(DeviceIndex index) { set_index(index); }
  OptionalCUDAGuard(const OptionalCUDAGuard&) = delete;
  OptionalCUDAGuard& operator=(const OptionalCUDAGuard&) = delete;
  ~OptionalCUDAGuard() { reset(); }
  void set_device(Device device) { set_index(device.index()); }
  void reset_device(Device device) { set_index(device.index()); }
  void set_index(DeviceIndex index) {
    if (index < 0) return;
    const DeviceIndex now = current_device();
    if (!original_) original_ = now;
    if (now != index) cuda::set_device(index);
  }
  void reset() {
    if (original_ && current_device() != *original_) cuda::set_device(*original_);
    original_.reset();
  }

 private:
  std::optional<DeviceIndex> original_;
};
class CUDAGuard : public OptionalCUDAGuard {
 public:
  explicit CUDAGuard(DeviceIndex index) : OptionalCUDAGuard(index) {}
  explicit CUDAGuard(Device device) : OptionalCUDAGuard(std::optional<Device>(device)) {}
};
// Makes a stream the current one; both it and the device are as before in the end.
class CUDAStreamGuard {
 public:
  explicit CUDAStreamGuard(CUDAStream stream)
      : stream_(stream), original_(getCurrentCUDAStream()) {
    if (aoti_torch_create_cuda_stream_guard(stream.stream(), stream.device_index(), &guard_) != 0) {
      throw Error("could not set the current CUDA stream");
    }
  }
  CUDAStreamGuard(const CUDAStreamGuard&) = delete;
  CUDAStreamGuard& operator=(const CUDAStreamGuard&) = delete;
  ~CUDAStreamGuard() { (void)aoti_torch_delete_cuda_stream_guard(guard_); }
  CUDAStream original_stream() const { return original_; }
  CUDAStream current_stream() const { return stream_; }

 private:
  CUDAStream stream_, original_;
  CUDAStreamGuardOpaque* guard_ = nullptr;
};
inline void stream_synchronize(cudaStream_t stream) { check(cudaStreamSynchronize(stream)); }
}  // namespace refinery_
}  // namespace cuda
}  // namespace c10

namespace at {
inline namespace refinery_ {
using c10::device_of;
// Only CUDA devices have something to guard.
class OptionalDeviceGuard {
 public:
  explicit OptionalDeviceGuard(std::optional<c10::Device> device)
      : guard_(device && device->is_cuda() ? device : std::nullopt) {}

 private:
  c10::cuda::OptionalCUDAGuard guard_;
};
class DeviceGuard : public OptionalDeviceGuard {
 public:
  explicit DeviceGuard(c10::Device device) : OptionalDeviceGuard(device) {}
};
}  // namespace refinery_
namespace cuda {
using c10::cuda::CUDAGuard;
using c10::cuda::CUDAStream;
using c10::cuda::CUDAStreamGuard;
using c10::cuda::current_device;
using c10::cuda::device_count;
using c10::cuda::getCurrentCUDAStream;
using c10::cuda::getDefaultCUDAStream;
using c10::cuda::getStreamFromExternal;
using c10::cuda::OptionalCUDAGuard;
using c10::cuda::stream_synchronize;
#ifdef REFINERY_CUBLAS
// PyTorch's own: the type is CUDA's, so the declaration is the same.
cublasHandle_t getCurrentCUDABlasHandle();
#endif
inline namespace refinery_ {
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
inline int warp_size() { return 32; }
inline bool is_available() { return c10::cuda::device_count() > 0; }
template <class T>
T ATenCeilDiv(T a, T b) { return (a + b - 1) / b; }
}  // namespace refinery_
}  // namespace cuda
template <class T>
T ceil_div(T a, T b) { return (a + b - 1) / b; }
}  // namespace at

#define C10_CUDA_CHECK(...) ::c10::cuda::check(__VA_ARGS__)
#define AT_CUDA_CHECK(...) C10_CUDA_CHECK(__VA_ARGS__)
#define C10_CUDA_CHECK_WARN(...) (void)(__VA_ARGS__)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define TORCH_CUDABLAS_CHECK(...)                                                      \
  do {                                                                                 \
    cublasStatus_t refinery_status = (__VA_ARGS__);                                    \
    TORCH_CHECK(refinery_status == CUBLAS_STATUS_SUCCESS,                              \
                "CUDA error: ", cublasGetStatusString(refinery_status));               \
  } while (0)
#define CUDA_KERNEL_LOOP(i, n) \
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < (n); \
       i += int64_t(blockDim.x) * gridDim.x)
