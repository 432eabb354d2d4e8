// Functions that make tensors, and functions that are no method. Included by tensor.h.
#pragma once

#include "operators.h"

namespace at {
inline namespace refinery_ {

// Making tensors.
inline Tensor empty(IntArrayRef size, const TensorOptions& o = {},
                    std::optional<c10::MemoryFormat> f = std::nullopt) {
  auto format = f ? f : o.memory_format_opt();
  auto device = o.device_opt();
  auto type = o.dtype_opt();
  auto t = Tensor::steal(rf::empty(
      size.data(), size.size(), type ? static_cast<int>(*type) : -1,
      device ? static_cast<int>(device->type()) : -1, device ? device->index() : -1,
      o.pinned_memory(), format ? static_cast<int>(*format) : -1));
  return o.requires_grad() ? t.requires_grad_() : t;
}
inline Tensor full(IntArrayRef size, const Scalar& v, const TensorOptions& o = {}) {
  const bool typed = o.dtype_opt().has_value() || v.isFloatingPoint();
  return empty(size, typed ? o : o.dtype(v.isBoolean() ? c10::kBool : c10::kLong)).fill_(v);
}
inline Tensor zeros(IntArrayRef size, const TensorOptions& o = {}) { return empty(size, o).zero_(); }
inline Tensor ones(IntArrayRef size, const TensorOptions& o = {}) { return empty(size, o).fill_(1); }
inline Tensor empty_like(const Tensor& x, std::optional<c10::MemoryFormat> f = std::nullopt) {
  return rf::one("aten::empty_like", "", {x, std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                 f});
}
inline Tensor empty_like(const Tensor& x, const TensorOptions& o,
                         std::optional<c10::MemoryFormat> f = std::nullopt) {
  return rf::one("aten::empty_like", "", {x, o.dtype_opt(), std::nullopt, o.device_opt(),
                 std::nullopt, f ? f : o.memory_format_opt()});
}
inline Tensor zeros_like(const Tensor& x) { return empty_like(x).zero_(); }
inline Tensor zeros_like(const Tensor& x, const TensorOptions& o) { return empty_like(x, o).zero_(); }
inline Tensor ones_like(const Tensor& x) { return empty_like(x).fill_(1); }
inline Tensor ones_like(const Tensor& x, const TensorOptions& o) { return empty_like(x, o).fill_(1); }
inline Tensor full_like(const Tensor& x, const Scalar& v) { return empty_like(x).fill_(v); }
inline Tensor full_like(const Tensor& x, const Scalar& v, const TensorOptions& o) {
  return empty_like(x, o).fill_(v);
}
inline Tensor empty_strided(IntArrayRef size, IntArrayRef stride, const TensorOptions& o = {}) {
  return rf::one("aten::empty_strided", "", {size, stride, o.dtype_opt(), std::nullopt,
                 o.device_opt()});
}
inline Tensor Tensor::new_empty(IntArrayRef size, TensorOptions o) const {
  return at::empty(size, o.dtype(o.dtype_opt().value_or(scalar_type()))
                             .device(o.device_opt().value_or(device())));
}
inline Tensor Tensor::new_zeros(IntArrayRef size, TensorOptions o) const {
  return new_empty(size, o).zero_();
}
inline Tensor from_blob(void* data, IntArrayRef size, const TensorOptions& o = {}) {
  auto device = o.device_opt();
  auto type = o.dtype_opt();
  return Tensor::steal(rf::from_blob(data, size.data(), size.size(), nullptr, 0,
                                     type ? static_cast<int>(*type) : -1,
                                     device ? static_cast<int>(device->type()) : -1,
                                     device ? device->index() : -1));
}
inline Tensor from_blob(void* data, IntArrayRef size, IntArrayRef stride,
                        const TensorOptions& o = {}) {
  auto device = o.device_opt();
  auto type = o.dtype_opt();
  return Tensor::steal(rf::from_blob(data, size.data(), size.size(), stride.data(), stride.size(),
                                     type ? static_cast<int>(*type) : -1,
                                     device ? static_cast<int>(device->type()) : -1,
                                     device ? device->index() : -1));
}
inline Tensor arange(const Scalar& end, const TensorOptions& o = {}) {
  return rf::one("aten::arange", "", {end, o.dtype_opt(), std::nullopt, o.device_opt()});
}
inline Tensor arange(const Scalar& start, const Scalar& end, const TensorOptions& o = {}) {
  return rf::one("aten::arange", "start", {start, end, o.dtype_opt(), std::nullopt, o.device_opt()});
}
inline Tensor rand(IntArrayRef size, const TensorOptions& o = {}) {
  return rf::one("aten::rand", "", {size, o.dtype_opt(), std::nullopt, o.device_opt()});
}
inline Tensor randn(IntArrayRef size, const TensorOptions& o = {}) {
  return rf::one("aten::randn", "", {size, o.dtype_opt(), std::nullopt, o.device_opt()});
}
// The type of torch::tensor(...): PyTorch's default for all fractions, long for all integers.
template <class T>
TensorOptions literal_options(const TensorOptions& o) {
  if (o.dtype_opt() || std::is_floating_point_v<T>) return o;
  return o.dtype(std::is_same_v<T, bool> ? c10::kBool : c10::kLong);
}
// Of other types PyTorch's own is ambiguous.
template <class T>
constexpr bool is_literal = false;
#define REFINERY_LITERAL(cpp, name) \
  template <>                       \
  inline constexpr bool is_literal<cpp> = true;
REFINERY_LITERAL_TYPES(REFINERY_LITERAL)
#undef REFINERY_LITERAL
template <class T, std::enable_if_t<is_literal<T>, int> = 0>
Tensor tensor(T v, const TensorOptions& o = {}) {
  return empty({}, literal_options<T>(o)).fill_(v);
}
template <class T, std::enable_if_t<is_literal<T>, int> = 0>
Tensor tensor(std::initializer_list<T> all, const TensorOptions& o = {}) {
  Tensor made = empty({static_cast<int64_t>(all.size())}, c10::CppTypeToScalarType<T>::value);
  std::copy(all.begin(), all.end(), made.template data_ptr<T>());
  const TensorOptions wanted = literal_options<T>(o);
  return made.to(wanted.dtype(wanted.dtype()));
}

inline std::optional<c10::Device> device_of(const Tensor& x) {
  return x.defined() ? std::make_optional(x.device()) : std::nullopt;
}

// Functions that are a method with its first argument in front.
inline Tensor sum(const Tensor& x, OptionalScalarType type = std::nullopt) { return x.sum(type); }
inline Tensor sum(const Tensor& x, IntArrayRef dims, bool keepdim = false,
                  OptionalScalarType type = std::nullopt) {
  return x.sum(OptionalInts(dims), keepdim, type);
}
inline Tensor mean(const Tensor& x, OptionalScalarType type = std::nullopt) { return x.mean(type); }
inline Tensor mean(const Tensor& x, IntArrayRef dims, bool keepdim = false,
                   OptionalScalarType type = std::nullopt) {
  return x.mean(OptionalInts(dims), keepdim, type);
}
inline Tensor var(const Tensor& x, int64_t dim, bool unbiased = true, bool keepdim = false) {
  return x.var(dim, unbiased, keepdim);
}
inline Tensor flip(const Tensor& x, IntArrayRef dims) { return x.flip(dims); }
inline Tensor max(const Tensor& x) { return x.max(); }
inline Tensor min(const Tensor& x) { return x.min(); }
inline Tensor max(const Tensor& a, const Tensor& b) { return a.maximum(b); }
inline Tensor min(const Tensor& a, const Tensor& b) { return a.minimum(b); }
inline std::tuple<Tensor, Tensor> max(const Tensor& x, int64_t dim, bool keepdim = false) {
  return x.max(dim, keepdim);
}
inline std::tuple<Tensor, Tensor> min(const Tensor& x, int64_t dim, bool keepdim = false) {
  return x.min(dim, keepdim);
}
inline Tensor amax(const Tensor& x, IntArrayRef dims = {}, bool keepdim = false) {
  return x.amax(dims, keepdim);
}
inline Tensor argmax(const Tensor& x, std::optional<int64_t> dim = std::nullopt,
                     bool keepdim = false) {
  return x.argmax(dim, keepdim);
}
inline Tensor softmax(const Tensor& x, int64_t dim, OptionalScalarType type = std::nullopt) {
  return x.softmax(dim, type);
}
inline Tensor log_softmax(const Tensor& x, int64_t dim, OptionalScalarType type = std::nullopt) {
  return x.log_softmax(dim, type);
}
inline Tensor cumsum(const Tensor& x, int64_t dim) { return x.cumsum(dim); }
inline Tensor norm(const Tensor& x, const Scalar& p = 2) { return x.norm(p); }
inline Tensor clamp(const Tensor& x, const std::optional<Scalar>& low,
                    const std::optional<Scalar>& high = std::nullopt) {
  return x.clamp(low, high);
}
inline Tensor clamp_min(const Tensor& x, const Scalar& v) { return x.clamp_min(v); }
inline Tensor clamp_max(const Tensor& x, const Scalar& v) { return x.clamp_max(v); }
inline Tensor clone(const Tensor& x) { return x.clone(); }
inline Tensor transpose(const Tensor& x, int64_t a, int64_t b) { return x.transpose(a, b); }
inline Tensor t(const Tensor& x) { return x.t(); }
inline Tensor reshape(const Tensor& x, IntArrayRef size) { return x.reshape(size); }
inline Tensor flatten(const Tensor& x, int64_t first = 0, int64_t last = -1) {
  return x.flatten(first, last);
}
inline Tensor unsqueeze(const Tensor& x, int64_t dim) { return x.unsqueeze(dim); }
inline Tensor squeeze(const Tensor& x) { return x.squeeze(); }
inline Tensor squeeze(const Tensor& x, int64_t dim) { return x.squeeze(dim); }
inline Tensor addmm(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta = 1,
                    const Scalar& alpha = 1) {
  return c.addmm(a, b, beta, alpha);
}
inline Tensor& mm_out(Tensor& out, const Tensor& a, const Tensor& b) {
  rf::self("aten::mm", "out", out, {a, b, out});
  return out;
}
inline Tensor& matmul_out(Tensor& out, const Tensor& a, const Tensor& b) {
  rf::self("aten::matmul", "out", out, {a, b, out});
  return out;
}
inline Tensor linear(const Tensor& x, const Tensor& w, const std::optional<Tensor>& b = {}) {
  return rf::one("aten::linear", "", {x, w, b});
}
inline Tensor cat(TensorList all, int64_t dim = 0) { return rf::one("aten::cat", "", {all, dim}); }
inline Tensor stack(TensorList all, int64_t dim = 0) { return rf::one("aten::stack", "", {all, dim}); }
inline Tensor where(const Tensor& c, const Tensor& a, const Tensor& b) {
  return rf::one("aten::where", "self", {c, a, b});
}
inline Tensor gelu(const Tensor& x, const char* approximate = "none") {
  return rf::one("aten::gelu", "", {x, approximate});
}
inline Tensor silu(const Tensor& x) { return rf::one("aten::silu", "", {x}); }
inline Tensor leaky_relu(const Tensor& x, const Scalar& slope = 0.01) {
  return rf::one("aten::leaky_relu", "", {x, slope});
}
inline Tensor layer_norm(const Tensor& x, IntArrayRef shape, const std::optional<Tensor>& w = {},
                         const std::optional<Tensor>& b = {}, double eps = 1e-5) {
  return rf::one("aten::layer_norm", "", {x, shape, w, b, eps});
}
inline Tensor baddbmm(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta = 1,
                      const Scalar& alpha = 1) {
  return rf::one("aten::baddbmm", "", {c, a, b, beta, alpha});
}
inline Tensor einsum(const char* equation, TensorList all) {
  return rf::one("aten::einsum", "", {equation, all, std::nullopt});
}
#define REFINERY_CONVOLUTION(name)                                                            \
  inline Tensor name(const Tensor& x, const Tensor& w, const std::optional<Tensor>& b = {},   \
                     IntArrayRef stride = 1, IntArrayRef padding = 0, IntArrayRef dilation = 1, \
                     int64_t groups = 1) {                                                    \
    return rf::one("aten::" #name, "", {x, w, b, stride, padding, dilation, groups});           \
  }                                                                                           \
  inline Tensor name(const Tensor& x, const Tensor& w, const std::optional<Tensor>& b,        \
                     IntArrayRef stride, std::string_view padding, IntArrayRef dilation = 1,  \
                     int64_t groups = 1) {                                                    \
    return rf::one("aten::" #name, "padding", {x, w, b, stride, padding, dilation, groups});  \
  }
REFINERY_CONVOLUTION(conv1d)
REFINERY_CONVOLUTION(conv2d)
REFINERY_CONVOLUTION(conv3d)
#undef REFINERY_CONVOLUTION

// No gradients are recorded in its scope.
struct NoGradGuard {
  NoGradGuard() : before_(rf::set_grad_enabled(false)) {}
  ~NoGradGuard() { rf::set_grad_enabled(before_); }
  NoGradGuard(const NoGradGuard&) = delete;

 private:
  bool before_;
};
}  // namespace refinery_
}  // namespace at

namespace torch {
using at::NoGradGuard;
}  // namespace torch
