// at::opmath_type. Not part of torch/extension.h, in PyTorch's headers neither.
#pragma once

#include "types.h"

namespace at {
inline namespace refinery_ {

template <class T>
struct OpMathType {
  using type = T;
};
template <>
struct OpMathType<c10::Half> {
  using type = float;
};
template <>
struct OpMathType<c10::BFloat16> {
  using type = float;
};
template <class T>
using opmath_type = typename OpMathType<T>::type;

}  // namespace refinery_
}  // namespace at
