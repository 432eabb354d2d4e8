// at::acc_type. Not part of torch/extension.h, in PyTorch's headers neither.
#pragma once

#include "types.h"

namespace at {
inline namespace refinery_ {

// In what PyTorch sums: wider on the CPU than on the GPU.
template <class T, bool is_cuda>
using acc_type = std::conditional_t<
    std::is_integral_v<T>, int64_t,
    std::conditional_t<!is_cuda && std::is_same_v<T, float>, double,
                       std::conditional_t<std::is_same_v<T, c10::Half> || std::is_same_v<T, c10::BFloat16>,
                                          float, T>>>;

}  // namespace refinery_
}  // namespace at
