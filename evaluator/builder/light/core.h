// Number types, devices, shapes, options and checks: what generated kernels name besides Tensor.
//
// All types of our own live in an inline namespace, so that their mangled names differ from those
// of libtorch, which lives in the same process; the builder cuts that name out of messages.
#pragma once

// PyTorch's headers bring all of these along, and candidates rely on it. Those that take a compiler
// long are left out for a source that names nothing of them (unneeded_headers.py). Where this was
// wrong, the source does not compile, and is compiled again with all of them.
#include <array>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#ifndef REFINERY_LEAN_LIBRARY
#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <sstream>
#include <unordered_map>
#endif

#ifdef REFINERY_LEAN_NUMBERS
#include <c10/macros/Macros.h>
namespace c10 {
struct Half;
struct BFloat16;
}
#else
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#endif

#include "runtime.h"

namespace c10 {
inline namespace refinery_ {

using Error = ::refinery::Failure;
using std::nullopt;
using std::nullopt_t;
template <class T>
using optional = std::optional<T>;
using std::make_optional;

enum class ScalarType : int8_t {
  Byte, Char, Short, Int, Long, Half, Float, Double, ComplexHalf, ComplexFloat, ComplexDouble,
  Bool, QInt8, QUInt8, QInt32, BFloat16, QUInt4x2, QUInt2x4, Bits1x8, Bits2x4, Bits4x2, Bits8,
  Bits16, Float8_e5m2, Float8_e4m3fn, Float8_e5m2fnuz, Float8_e4m3fnuz, UInt16, UInt32, UInt64,
};

#define REFINERY_CONSTANT(name) constexpr ScalarType k##name = ScalarType::name;
REFINERY_CONSTANT(Byte) REFINERY_CONSTANT(Char) REFINERY_CONSTANT(Short) REFINERY_CONSTANT(Int)
REFINERY_CONSTANT(Long) REFINERY_CONSTANT(Half) REFINERY_CONSTANT(Float) REFINERY_CONSTANT(Double)
REFINERY_CONSTANT(Bool) REFINERY_CONSTANT(BFloat16) REFINERY_CONSTANT(UInt16)
REFINERY_CONSTANT(UInt32) REFINERY_CONSTANT(UInt64)
#undef REFINERY_CONSTANT

template <class T>
struct CppTypeToScalarType;
namespace impl {
template <ScalarType>
struct ScalarTypeToCPPType;
}  // namespace impl
// The C++ types of elements, and what they are called. Whatever PyTorch has for these types alone,
// it has neither for `long long`, which is not its int64_t, nor for constants.
#define REFINERY_LITERAL_TYPES(_)                                                             \
  _(uint8_t, Byte) _(int8_t, Char) _(int16_t, Short) _(int, Int) _(int64_t, Long)             \
  _(float, Float) _(double, Double) _(bool, Bool)
#define REFINERY_ELEMENT_TYPES(_)                                                             \
  REFINERY_LITERAL_TYPES(_) _(::c10::Half, Half) _(::c10::BFloat16, BFloat16)                 \
  _(uint16_t, UInt16) _(uint32_t, UInt32) _(uint64_t, UInt64)
#define REFINERY_CPP_TYPE(cpp, name)                                                          \
  template <>                                                                                 \
  struct CppTypeToScalarType<cpp> : std::integral_constant<ScalarType, ScalarType::name> {};  \
  template <>                                                                                 \
  struct impl::ScalarTypeToCPPType<ScalarType::name> {                                        \
    using type = cpp;                                                                         \
  };
REFINERY_ELEMENT_TYPES(REFINERY_CPP_TYPE)
#undef REFINERY_CPP_TYPE

inline const char* toString(ScalarType type) {
  return ::refinery::dtype_name(static_cast<int>(type));
}
inline size_t elementSize(ScalarType type) {
  return ::refinery::element_size(static_cast<int>(type));
}
inline bool isFloatingType(ScalarType t) {
  return t == kHalf || t == kFloat || t == kDouble || t == kBFloat16;
}
inline bool isIntegralType(ScalarType t, bool include_bool = false) {
  return (t >= kByte && t <= kLong) || (t >= kUInt16 && t <= kUInt64) ||
         (include_bool && t == kBool);
}

}  // namespace refinery_
}  // namespace c10

namespace caffe2 {
inline namespace refinery_ {
// What Tensor::dtype() gives: compares with a ScalarType, and is none.
class TypeMeta {
 public:
  explicit TypeMeta(c10::ScalarType type) : type_(type) {}
  c10::ScalarType toScalarType() const { return type_; }
  size_t itemsize() const { return c10::elementSize(type_); }
  std::string_view name() const { return ::refinery::type_name(static_cast<int>(type_)); }
  bool operator==(TypeMeta o) const { return type_ == o.type_; }
  bool operator!=(TypeMeta o) const { return type_ != o.type_; }
  bool operator==(c10::ScalarType o) const { return type_ == o; }
  bool operator!=(c10::ScalarType o) const { return type_ != o; }

 private:
  c10::ScalarType type_;
};
}  // namespace refinery_
}  // namespace caffe2

namespace c10 {
inline namespace refinery_ {
enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
constexpr DeviceType kCPU = DeviceType::CPU;
constexpr DeviceType kCUDA = DeviceType::CUDA;
using DeviceIndex = int8_t;

class Device {
 public:
  Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {}
  DeviceType type() const { return type_; }
  DeviceIndex index() const { return index_; }
  bool has_index() const { return index_ != -1; }
  bool is_cuda() const { return type_ == kCUDA; }
  bool is_cpu() const { return type_ == kCPU; }
  bool operator==(const Device& o) const { return type_ == o.type_ && index_ == o.index_; }
  bool operator!=(const Device& o) const { return !(*this == o); }
  std::string str() const {
    std::string name = is_cpu() ? "cpu" : is_cuda() ? "cuda" : "device";
    return has_index() ? name + ":" + std::to_string(index_) : name;
  }

 private:
  DeviceType type_;
  DeviceIndex index_;
};

enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

template <class T>
class ArrayRef {
 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;
  constexpr ArrayRef() : data_(nullptr), size_(0) {}
  constexpr ArrayRef(const T& one) : data_(&one), size_(1) {}
  constexpr ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  constexpr ArrayRef(const T* first, const T* last) : data_(first), size_(last - first) {}
  ArrayRef(const std::vector<T>& all) : data_(all.data()), size_(all.size()) {}
  template <size_t N>
  constexpr ArrayRef(const std::array<T, N>& all) : data_(all.data()), size_(N) {}
  template <size_t N>
  constexpr ArrayRef(const T (&all)[N]) : data_(all), size_(N) {}
  constexpr ArrayRef(const std::initializer_list<T>& all)
      : data_(all.begin() == all.end() ? nullptr : all.begin()), size_(all.size()) {}
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  constexpr const T& back() const { return data_[size_ - 1]; }
  bool equals(ArrayRef o) const { return size_ == o.size_ && std::equal(begin(), end(), o.begin()); }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }

 private:
  const T* data_;
  size_t size_;
};
template <class T>
bool operator==(ArrayRef<T> a, ArrayRef<T> b) { return a.equals(b); }
template <class T>
bool operator!=(ArrayRef<T> a, ArrayRef<T> b) { return !a.equals(b); }
using IntArrayRef = ArrayRef<int64_t>;

class Scalar {
 public:
  Scalar() : Scalar(int64_t(0)) {}
  Scalar(bool v) : kind_(boolean), integer_(v), real_(v) {}
  template <class T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  Scalar(T v) : kind_(integer), integer_(static_cast<int64_t>(v)), real_(static_cast<double>(v)) {}
  template <class T, std::enable_if_t<std::is_floating_point_v<T>, int> = 0>
  Scalar(T v) : kind_(real), integer_(static_cast<int64_t>(v)), real_(static_cast<double>(v)) {}
  Scalar(unsigned long long) = delete;  // ambiguous
  template <class T>
  T to() const = delete;
  double toDouble() const { return as<double>(); }
  float toFloat() const { return as<float>(); }
  int64_t toLong() const { return as<int64_t>(); }
  int toInt() const { return as<int>(); }
  bool toBool() const { return as<bool>(); }
  bool isFloatingPoint() const { return kind_ == real; }
  bool isIntegral(bool include_bool) const {
    return kind_ == integer || (include_bool && kind_ == boolean);
  }
  bool isBoolean() const { return kind_ == boolean; }
  ::refinery::Value value() const {
    ::refinery::Value v(kind_ == integer ? ::refinery::Value::integer : ::refinery::Value::boolean,
                        nullptr, integer_);
    if (kind_ == real) v.tag = ::refinery::Value::real;
    v.fraction = real_;
    return v;
  }

 private:
  template <class T>
  T as() const {
    return kind_ == real ? static_cast<T>(real_) : static_cast<T>(integer_);
  }
  enum { real, integer, boolean } kind_;
  int64_t integer_;
  double real_;
};
#define REFINERY_TO(cpp, name) \
  template <>                  \
  inline cpp Scalar::to<cpp>() const { return as<cpp>(); }
REFINERY_LITERAL_TYPES(REFINERY_TO)
#undef REFINERY_TO
inline ScalarType typeMetaToScalarType(caffe2::TypeMeta type) { return type.toScalarType(); }
}  // namespace refinery_

// Messages, part by part: as an ostream would write them.
namespace detail {
inline void append(std::string& out, const char* text) { out += text; }
inline void append(std::string& out, const std::string& text) { out += text; }
inline void append(std::string& out, char c) { out += c; }
inline void append(std::string& out, ScalarType type) { out += toString(type); }
inline void append(std::string& out, caffe2::TypeMeta type) { out += type.name(); }
inline void append(std::string& out, DeviceType type) { out += Device(type).str(); }
inline void append(std::string& out, const Device& device) { out += device.str(); }
template <class T>
void append(std::string& out, const T& part);
template <class T>
[[gnu::cold]] void append(std::string& out, const ArrayRef<T>& all) {
  out += "[";
  for (size_t i = 0; i < all.size(); i++) {
    if (i) out += ", ";
    append(out, all[i]);
  }
  out += "]";
}
template <class T>
void append(std::string& out, const T& part) {
  if constexpr (std::is_same_v<T, bool>) {
    out += part ? "1" : "0";
  } else if constexpr (std::is_integral_v<T>) {
    out += std::to_string(part);
  } else {
#ifdef REFINERY_LEAN_LIBRARY
    static_assert(std::is_floating_point_v<T>, "a message needs streams");
    char text[32];
    std::snprintf(text, sizeof text, "%g", static_cast<double>(part));
    out += text;
#else
    std::ostringstream stream;
    stream << part;
    out += stream.str();
#endif
  }
}
template <class... A>
[[gnu::cold, gnu::noinline]] std::string torchCheckMsgImpl(const char* fallback, const A&... parts) {
  std::string out(sizeof...(A) == 0 ? fallback : "");
  (append(out, parts), ...);
  return out;
}
}  // namespace detail
template <class... A>
std::string str(const A&... parts) {
  return detail::torchCheckMsgImpl("", parts...);
}

inline namespace refinery_ {
class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(ScalarType type) : dtype_(type) {}
  TensorOptions(caffe2::TypeMeta type) : dtype_(type.toScalarType()) {}
  TensorOptions(Device device) : device_(device) {}
  TensorOptions(DeviceType type) : device_(Device(type)) {}
  TensorOptions(MemoryFormat f) : format_(f) {}
  TensorOptions dtype(ScalarType type) const { return with([&](auto& o) { o.dtype_ = type; }); }
  TensorOptions dtype(caffe2::TypeMeta type) const { return dtype(type.toScalarType()); }
  TensorOptions device(Device device) const { return with([&](auto& o) { o.device_ = device; }); }
  TensorOptions device(DeviceType type, DeviceIndex index = -1) const {
    return device(Device(type, index));
  }
  TensorOptions requires_grad(bool on) const {
    return with([&](auto& o) { o.requires_grad_ = on; });
  }
  TensorOptions pinned_memory(bool on) const { return with([&](auto& o) { o.pinned_ = on; }); }
  TensorOptions memory_format(MemoryFormat f) const { return with([&](auto& o) { o.format_ = f; }); }
  bool requires_grad() const { return requires_grad_; }
  bool pinned_memory() const { return pinned_; }
  std::optional<ScalarType> dtype_opt() const { return dtype_; }
  std::optional<Device> device_opt() const { return device_; }
  std::optional<MemoryFormat> memory_format_opt() const { return format_; }

 private:
  template <class F>
  TensorOptions with(F&& change) const {
    TensorOptions copy = *this;
    change(copy);
    return copy;
  }
  std::optional<ScalarType> dtype_;
  std::optional<Device> device_;
  std::optional<MemoryFormat> format_;
  bool requires_grad_ = false;
  bool pinned_ = false;
};
inline TensorOptions dtype(ScalarType type) { return TensorOptions(type); }
inline TensorOptions dtype(caffe2::TypeMeta type) { return TensorOptions(type); }
inline TensorOptions device(Device device) { return TensorOptions(device); }

}  // namespace refinery_
}  // namespace c10

namespace at {
using namespace c10;
}
namespace torch {
using namespace at;
using Dtype = at::ScalarType;
// Only here, and not in at, do these have names of this kind.
constexpr auto kUInt8 = at::kByte, kInt8 = at::kChar, kInt16 = at::kShort, kInt32 = at::kInt,
               kInt64 = at::kLong, kFloat16 = at::kHalf, kFloat32 = at::kFloat,
               kFloat64 = at::kDouble;
}  // namespace torch

#define REFINERY_CHECK(kind, fallback, condition, ...)                                        \
  if (C10_UNLIKELY(!(condition))) {                                                           \
    throw ::c10::Error(::c10::Error::kind,                                                    \
                       ::c10::detail::torchCheckMsgImpl(fallback, ##__VA_ARGS__));            \
  }
#define REFINERY_NO_MESSAGE(condition)                                                        \
  "Expected " #condition " to be true, but got false.  (Could this error message be "         \
  "improved?  If so, please report an enhancement request to PyTorch.)"
#define TORCH_CHECK(c, ...) REFINERY_CHECK(runtime, REFINERY_NO_MESSAGE(c), c, ##__VA_ARGS__)
#define TORCH_CHECK_INDEX(c, ...) REFINERY_CHECK(index, REFINERY_NO_MESSAGE(c), c, ##__VA_ARGS__)
#define TORCH_CHECK_VALUE(c, ...) REFINERY_CHECK(value, REFINERY_NO_MESSAGE(c), c, ##__VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(c, ...) \
  REFINERY_CHECK(not_implemented, REFINERY_NO_MESSAGE(c), c, ##__VA_ARGS__)
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK((a) == (b), #a " == " #b)
#define TORCH_CHECK_NE(a, b) TORCH_CHECK((a) != (b), #a " != " #b)
#define TORCH_CHECK_LT(a, b) TORCH_CHECK((a) < (b), #a " < " #b)
#define TORCH_CHECK_LE(a, b) TORCH_CHECK((a) <= (b), #a " <= " #b)
#define TORCH_CHECK_GT(a, b) TORCH_CHECK((a) > (b), #a " > " #b)
#define TORCH_CHECK_GE(a, b) TORCH_CHECK((a) >= (b), #a " >= " #b)
#define TORCH_INTERNAL_ASSERT(c, ...) \
  REFINERY_CHECK(runtime, #c " INTERNAL ASSERT FAILED", c, ##__VA_ARGS__)
#define AT_ASSERTM(...) TORCH_CHECK(__VA_ARGS__)
#define AT_ERROR(...) TORCH_CHECK(false, ##__VA_ARGS__)

// Over the checks above, as PyTorch's own is over its.
#ifndef REFINERY_LEAN_LIBRARY
#include <c10/util/irange.h>
#endif
