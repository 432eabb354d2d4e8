// Guards of the current device and of its stream. As in PyTorch, of CUDAGuard.h alone.
#pragma once

#include "cuda_stream.h"

extern "C" {
struct CUDAStreamGuardOpaque;
int32_t aoti_torch_create_cuda_stream_guard(void* stream, int32_t device_index,
                                            CUDAStreamGuardOpaque** guard);
int32_t aoti_torch_delete_cuda_stream_guard(CUDAStreamGuardOpaque* guard);
}

namespace c10 {
namespace cuda {
inline namespace refinery_ {

// Makes a device the current one; in the end the first one is that again.
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
  void reset() = delete;
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
}  // namespace refinery_
}  // namespace cuda
}  // namespace c10
