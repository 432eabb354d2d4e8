// Strided views of a tensor's memory, on the host and in device code.
#pragma once

#include "core.h"

#if defined(__CUDACC__)
#define REFINERY_ANYWHERE __host__ __device__
#else
#define REFINERY_ANYWHERE
#endif

namespace at {
inline namespace refinery_ {

template <class T>
struct DefaultPtrTraits {
  using PtrType = T*;
};
#if defined(__CUDACC__)
template <class T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict__;
};
#endif

template <class T, size_t N, template <class> class Traits = DefaultPtrTraits,
          class Index = int64_t>
class TensorAccessor {
 public:
  using PtrType = typename Traits<T>::PtrType;
  REFINERY_ANYWHERE TensorAccessor(PtrType data, const Index* sizes, const Index* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  REFINERY_ANYWHERE decltype(auto) operator[](Index i) const {
    if constexpr (N == 1) {
      return static_cast<T&>(data_[strides_[0] * i]);
    } else {
      return TensorAccessor<T, N - 1, Traits, Index>(data_ + strides_[0] * i, sizes_ + 1,
                                                     strides_ + 1);
    }
  }
  REFINERY_ANYWHERE Index size(Index i) const { return sizes_[i]; }
  REFINERY_ANYWHERE Index stride(Index i) const { return strides_[i]; }
  REFINERY_ANYWHERE PtrType data() const { return data_; }

 private:
  PtrType data_;
  const Index* sizes_;
  const Index* strides_;
};

// Holds its sizes and strides, so that it can be a kernel's argument.
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits,
          class Index = int64_t>
class GenericPackedTensorAccessor {
 public:
  using PtrType = typename Traits<T>::PtrType;
  GenericPackedTensorAccessor(PtrType data, const int64_t* sizes, const int64_t* strides)
      : data_(data) {
    for (size_t i = 0; i < N; i++) {
      sizes_[i] = static_cast<Index>(sizes[i]);
      strides_[i] = static_cast<Index>(strides[i]);
    }
  }
  REFINERY_ANYWHERE decltype(auto) operator[](Index i) const {
    return TensorAccessor<T, N, Traits, Index>(data_, sizes_, strides_)[i];
  }
  REFINERY_ANYWHERE Index size(Index i) const { return sizes_[i]; }
  REFINERY_ANYWHERE Index stride(Index i) const { return strides_[i]; }
  REFINERY_ANYWHERE PtrType data() const { return data_; }

 private:
  PtrType data_;
  Index sizes_[N];
  Index strides_[N];
};
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, Traits, int32_t>;
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, Traits, int64_t>;

}  // namespace refinery_
}  // namespace at
