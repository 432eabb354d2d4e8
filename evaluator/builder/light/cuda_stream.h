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
inline DeviceIndex device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? static_cast<DeviceIndex>(count) : 0;
}
inline void device_synchronize() { check(cudaDeviceSynchronize()); }

class CUDAStream {
 public:
  operator cudaStream_t() const { return stream_; }
  cudaStream_t stream() const { return stream_; }
  DeviceIndex device_index() const { return index_; }
  Device device() const { return Device(kCUDA, index_); }
  void synchronize() const { check(cudaStreamSynchronize(stream_)); }
  bool query() const { return cudaStreamQuery(stream_) == cudaSuccess; }
  bool operator==(const CUDAStream& o) const { return stream_ == o.stream_; }
  bool operator!=(const CUDAStream& o) const { return stream_ != o.stream_; }

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
inline CUDAStream getDefaultCUDAStream(DeviceIndex index = -1) {
  return getStreamFromExternal(nullptr, index < 0 ? current_device() : index);
}
inline void stream_synchronize(cudaStream_t stream) { check(cudaStreamSynchronize(stream)); }
}  // namespace refinery_
}  // namespace cuda

inline namespace refinery_ {
// Makes a device the current one; in the end the first one is that again.
class DeviceSwitch {
 public:
  DeviceSwitch() = default;
  DeviceSwitch(const DeviceSwitch&) = delete;
  DeviceSwitch& operator=(const DeviceSwitch&) = delete;
  ~DeviceSwitch() { reset(); }
  void set_device(Device device) { set_index(device.index()); }
  void reset_device(Device device) { set_index(device.index()); }
  void set_index(DeviceIndex index) {
    if (index < 0) return;
    const DeviceIndex now = cuda::current_device();
    if (!original_) original_ = now;
    if (now != index) cuda::set_device(index);
  }
  void reset() {
    if (original_ && cuda::current_device() != *original_) cuda::set_device(*original_);
    original_.reset();
  }

 private:
  std::optional<DeviceIndex> original_;
};
// Only CUDA devices have something to guard.
class OptionalDeviceGuard {
 public:
  explicit OptionalDeviceGuard(std::optional<Device> device) {
    if (device && device->is_cuda()) switch_.set_device(*device);
  }

 private:
  DeviceSwitch switch_;
};
class DeviceGuard : public OptionalDeviceGuard {
 public:
  explicit DeviceGuard(Device device) : OptionalDeviceGuard(device) {}
};
}  // namespace refinery_
}  // namespace c10

namespace at {
namespace cuda {
using namespace c10::cuda;
}
}  // namespace at

#define C10_CUDA_CHECK(...) ::c10::cuda::check(__VA_ARGS__)
#define C10_CUDA_CHECK_WARN(...)                                                     \
  do {                                                                               \
    const cudaError_t refinery_error = (__VA_ARGS__);                                \
    if (C10_UNLIKELY(refinery_error != cudaSuccess)) {                               \
      (void)cudaGetLastError();                                                      \
      TORCH_WARN("CUDA warning: ", cudaGetErrorString(refinery_error));              \
    }                                                                                \
  } while (0)
#define C10_CUDA_ERROR_HANDLED(...) (__VA_ARGS__)
#define C10_CUDA_IGNORE_ERROR(...)                                     \
  do {                                                                 \
    if ((__VA_ARGS__) != cudaSuccess) (void)cudaGetLastError();        \
  } while (0)
#define C10_CUDA_CLEAR_ERROR() (void)cudaGetLastError()
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
