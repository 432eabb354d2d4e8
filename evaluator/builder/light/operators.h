// The operators of Tensor, as methods and functions, over the dispatcher. Included by tensor.h.
#pragma once

#include "tensor.h"

namespace refinery {

inline Value value(std::nullopt_t) { return {}; }
inline Value value(const at::Tensor& t) { return {Value::tensor, t.handle(), 1}; }
inline Value value(const c10::Scalar& s) { return s.value(); }
inline Value value(int64_t n) { return {Value::integer, nullptr, n}; }
inline Value value(int n) { return {Value::integer, nullptr, n}; }
inline Value value(bool b) { return {Value::boolean, nullptr, b}; }
inline Value value(double d) { return c10::Scalar(d).value(); }
inline Value value(c10::ScalarType type) { return value(static_cast<int64_t>(type)); }
inline Value value(c10::MemoryFormat f) { return value(static_cast<int64_t>(f)); }
inline Value value(const c10::Device& device) {
  Value v(Value::device, nullptr, device.index());
  v.device_type = static_cast<int32_t>(device.type());
  return v;
}
inline Value value(const char* text) {
  return {Value::string, text, static_cast<int64_t>(std::strlen(text))};
}
inline Value value(std::string_view text) {
  return {Value::string, text.data(), static_cast<int64_t>(text.size())};
}
inline Value value(c10::IntArrayRef all) {
  return {Value::integers, all.data(), static_cast<int64_t>(all.size())};
}
inline Value value(at::TensorList all) {
  return {Value::tensors, all.data(), static_cast<int64_t>(all.size())};
}
template <class T>
Value value(const std::optional<T>& maybe) {
  return maybe ? value(*maybe) : Value();
}

// A Value made from whatever value() takes.
struct Argument : Value {
  template <class T>
  Argument(const T& any) : Value(value(any)) {}
};
static_assert(sizeof(Argument) == sizeof(Value), "a list of one is read as a list of the other");
using Arguments = std::initializer_list<Argument>;

inline Results call(const char* name, const char* overload, Arguments arguments) {
  return call(name, overload, arguments.begin(), arguments.size());
}
inline at::Tensor one(const char* name, const char* overload, Arguments arguments) {
  return at::Tensor::steal(call_one(name, overload, arguments.begin(), arguments.size()));
}
inline std::vector<at::Tensor> many(const char* name, const char* overload, Arguments arguments) {
  std::vector<at::Tensor> all;
  for (Handle* h : call(name, overload, arguments).tensors) all.push_back(at::Tensor::steal(h));
  return all;
}
inline std::tuple<at::Tensor, at::Tensor> two(const char* name, const char* overload,
                                              Arguments arguments) {
  auto all = call(name, overload, arguments).tensors;
  return {at::Tensor::steal(all.at(0)), at::Tensor::steal(all.at(1))};
}
// In place: what comes back is the first argument itself.
inline at::Tensor& self(const char* name, const char* overload, at::Tensor& t,
                        Arguments arguments) {
  call_in_place(name, overload, arguments.begin(), arguments.size());
  return t;
}
}  // namespace refinery

namespace at {
inline namespace refinery_ {
namespace rf = ::refinery;
using c10::IntArrayRef;
using c10::Scalar;
using c10::ScalarType;
using c10::TensorOptions;
using OptionalInts = std::optional<IntArrayRef>;
using OptionalScalarType = std::optional<ScalarType>;

#define REFINERY_DEFINE(name)                                                     \
  inline Tensor Tensor::name() const { return rf::one("aten::" #name, "", {*this}); } \
  inline Tensor& Tensor::name##_() { return rf::self("aten::" #name "_", "", *this, {*this}); } \
  inline Tensor name(const Tensor& x) { return x.name(); }                        \
  inline Tensor& name##_(Tensor& x) { return x.name##_(); }
REFINERY_UNARY(REFINERY_DEFINE)
#undef REFINERY_DEFINE
#define REFINERY_DEFINE(name)                                                     \
  inline Tensor Tensor::name() const { return rf::one("aten::" #name, "", {*this}); } \
  inline Tensor name(const Tensor& x) { return x.name(); }
REFINERY_PLAIN(REFINERY_DEFINE)
#undef REFINERY_DEFINE
#define REFINERY_DEFINE(name, sign)                                               \
  inline Tensor Tensor::name(const Tensor& o) const {                             \
    return rf::one("aten::" #name, "Tensor", {*this, o});                           \
  }                                                                               \
  inline Tensor Tensor::name(const Scalar& v) const {                             \
    return rf::one("aten::" #name, "Scalar", {*this, v});                           \
  }                                                                               \
  inline Tensor name(const Tensor& a, const Tensor& b) { return a.name(b); }      \
  inline Tensor name(const Tensor& a, const Scalar& b) { return a.name(b); }      \
  inline Tensor operator sign(const Tensor& a, const Tensor& b) { return a.name(b); } \
  inline Tensor operator sign(const Tensor& a, const Scalar& b) { return a.name(b); }
REFINERY_COMPARE(REFINERY_DEFINE)
#undef REFINERY_DEFINE
#define REFINERY_DEFINE(name)                                                     \
  inline Tensor Tensor::name(const Tensor& o) const {                             \
    return rf::one("aten::" #name, "", {*this, o});                                 \
  }                                                                               \
  inline Tensor name(const Tensor& a, const Tensor& b) { return a.name(b); }
REFINERY_PAIR(REFINERY_DEFINE)
#undef REFINERY_DEFINE

inline Tensor Tensor::add(const Tensor& o, const Scalar& alpha) const {
  return rf::one("aten::add", "Tensor", {*this, o, alpha});
}
inline Tensor Tensor::add(const Scalar& v, const Scalar& alpha) const {
  return rf::one("aten::add", "Scalar", {*this, v, alpha});
}
inline Tensor Tensor::sub(const Tensor& o, const Scalar& alpha) const {
  return rf::one("aten::sub", "Tensor", {*this, o, alpha});
}
inline Tensor Tensor::sub(const Scalar& v, const Scalar& alpha) const {
  return rf::one("aten::sub", "Scalar", {*this, v, alpha});
}
inline Tensor Tensor::mul(const Tensor& o) const { return rf::one("aten::mul", "Tensor", {*this, o}); }
inline Tensor Tensor::mul(const Scalar& v) const { return rf::one("aten::mul", "Scalar", {*this, v}); }
inline Tensor Tensor::div(const Tensor& o) const { return rf::one("aten::div", "Tensor", {*this, o}); }
inline Tensor Tensor::div(const Scalar& v) const { return rf::one("aten::div", "Scalar", {*this, v}); }
inline Tensor Tensor::pow(const Tensor& o) const {
  return rf::one("aten::pow", "Tensor_Tensor", {*this, o});
}
inline Tensor Tensor::pow(const Scalar& v) const {
  return rf::one("aten::pow", "Tensor_Scalar", {*this, v});
}
inline Tensor& Tensor::add_(const Tensor& o, const Scalar& alpha) {
  return rf::self("aten::add_", "Tensor", *this, {*this, o, alpha});
}
inline Tensor& Tensor::add_(const Scalar& v, const Scalar& alpha) {
  return rf::self("aten::add_", "Scalar", *this, {*this, v, alpha});
}
inline Tensor& Tensor::sub_(const Tensor& o, const Scalar& alpha) {
  return rf::self("aten::sub_", "Tensor", *this, {*this, o, alpha});
}
inline Tensor& Tensor::sub_(const Scalar& v, const Scalar& alpha) {
  return rf::self("aten::sub_", "Scalar", *this, {*this, v, alpha});
}
inline Tensor& Tensor::mul_(const Tensor& o) { return rf::self("aten::mul_", "Tensor", *this, {*this, o}); }
inline Tensor& Tensor::mul_(const Scalar& v) { return rf::self("aten::mul_", "Scalar", *this, {*this, v}); }
inline Tensor& Tensor::div_(const Tensor& o) { return rf::self("aten::div_", "Tensor", *this, {*this, o}); }
inline Tensor& Tensor::div_(const Scalar& v) { return rf::self("aten::div_", "Scalar", *this, {*this, v}); }

#define REFINERY_DEFINE(name, sign)                                                          \
  inline Tensor name(const Tensor& a, const Tensor& b) { return a.name(b); }                 \
  inline Tensor name(const Tensor& a, const Scalar& b) { return a.name(b); }                 \
  inline Tensor operator sign(const Tensor& a, const Tensor& b) { return a.name(b); }        \
  inline Tensor operator sign(const Tensor& a, const Scalar& b) { return a.name(b); }
REFINERY_DEFINE(add, +)
REFINERY_DEFINE(sub, -)
REFINERY_DEFINE(mul, *)
REFINERY_DEFINE(div, /)
#undef REFINERY_DEFINE
inline Tensor operator+(const Scalar& a, const Tensor& b) { return b.add(a); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return b.mul(a); }
inline Tensor operator-(const Scalar& a, const Tensor& b) {
  return rf::one("aten::rsub", "Scalar", {b, a});
}
inline Tensor operator/(const Scalar& a, const Tensor& b) { return b.reciprocal().mul(a); }
inline Tensor pow(const Tensor& a, const Tensor& b) { return a.pow(b); }
inline Tensor pow(const Tensor& a, const Scalar& b) { return a.pow(b); }
inline Tensor add(const Tensor& a, const Tensor& b, const Scalar& alpha) { return a.add(b, alpha); }
inline Tensor sub(const Tensor& a, const Tensor& b, const Scalar& alpha) { return a.sub(b, alpha); }

inline Scalar Tensor::item() const {
  auto r = rf::call("aten::_local_scalar_dense", "", {*this});
  return is_floating_point() ? Scalar(r.real)
         : scalar_type() == c10::kBool ? Scalar(r.integer != 0) : Scalar(r.integer);
}
#define REFINERY_ITEM(cpp, name) \
  template <>                    \
  inline cpp Tensor::item<cpp>() const { return item().to<cpp>(); }
REFINERY_LITERAL_TYPES(REFINERY_ITEM)
#ifndef REFINERY_LEAN_NUMBERS
REFINERY_HALF_TYPES(REFINERY_ITEM)
#endif
#undef REFINERY_ITEM
inline bool Tensor::is_non_overlapping_and_dense() const {
  return rf::call("aten::is_non_overlapping_and_dense", "", {*this}).integer != 0;
}
inline Tensor& Tensor::fill_(const Scalar& v) { return rf::self("aten::fill_", "Scalar", *this, {*this, v}); }
inline Tensor& Tensor::zero_() { return rf::self("aten::zero_", "", *this, {*this}); }
inline Tensor& Tensor::copy_(const Tensor& source, bool non_blocking) {
  return rf::self("aten::copy_", "", *this, {*this, source, non_blocking});
}
inline Tensor& Tensor::clamp_(const std::optional<Scalar>& low, const std::optional<Scalar>& high) {
  return rf::self("aten::clamp_", "", *this, {*this, low, high});
}
inline Tensor& Tensor::addmm_(const Tensor& a, const Tensor& b, const Scalar& beta,
                              const Scalar& alpha) {
  return rf::self("aten::addmm_", "", *this, {*this, a, b, beta, alpha});
}
inline Tensor& Tensor::requires_grad_(bool on) {
  return rf::self("aten::requires_grad_", "", *this, {*this, on});
}
inline Tensor& Tensor::resize_(IntArrayRef size) { return rf::self("aten::resize_", "", *this, {*this, size}); }
inline Tensor Tensor::clamp(const std::optional<Scalar>& low,
                            const std::optional<Scalar>& high) const {
  return rf::one("aten::clamp", "", {*this, low, high});
}
inline Tensor Tensor::clamp_min(const Scalar& v) const {
  return rf::one("aten::clamp_min", "", {*this, v});
}
inline Tensor Tensor::clamp_max(const Scalar& v) const {
  return rf::one("aten::clamp_max", "", {*this, v});
}
inline Tensor Tensor::masked_fill(const Tensor& mask, const Scalar& v) const {
  return rf::one("aten::masked_fill", "Scalar", {*this, mask, v});
}
inline Tensor Tensor::clone(std::optional<c10::MemoryFormat> f) const {
  return rf::one("aten::clone", "", {*this, f});
}
inline Tensor Tensor::contiguous(c10::MemoryFormat f) const {
  return is_contiguous(f) ? *this : rf::one("aten::contiguous", "", {*this, f});
}
inline Tensor Tensor::detach() const { return rf::one("aten::detach", "", {*this}); }
inline Tensor Tensor::alias() const { return rf::one("aten::alias", "", {*this}); }
inline Tensor Tensor::view(IntArrayRef size) const { return rf::one("aten::view", "", {*this, size}); }
inline Tensor Tensor::view(ScalarType type) const {
  return rf::one("aten::view", "dtype", {*this, type});
}
inline Tensor Tensor::reshape(IntArrayRef size) const {
  return rf::one("aten::reshape", "", {*this, size});
}
inline Tensor Tensor::flatten(int64_t first, int64_t last) const {
  return rf::one("aten::flatten", "using_ints", {*this, first, last});
}
inline Tensor Tensor::permute(IntArrayRef dims) const {
  return rf::one("aten::permute", "", {*this, dims});
}
inline Tensor Tensor::transpose(int64_t a, int64_t b) const {
  return rf::one("aten::transpose", "int", {*this, a, b});
}
inline Tensor Tensor::t() const { return rf::one("aten::t", "", {*this}); }
inline Tensor Tensor::squeeze() const { return rf::one("aten::squeeze", "", {*this}); }
inline Tensor Tensor::squeeze(int64_t dim) const { return rf::one("aten::squeeze", "dim", {*this, dim}); }
inline Tensor Tensor::unsqueeze(int64_t dim) const {
  return rf::one("aten::unsqueeze", "", {*this, dim});
}
inline Tensor Tensor::expand(IntArrayRef size, bool implicit) const {
  return rf::one("aten::expand", "", {*this, size, implicit});
}
inline Tensor Tensor::repeat(IntArrayRef n) const { return rf::one("aten::repeat", "", {*this, n}); }
inline Tensor Tensor::as_strided(IntArrayRef size, IntArrayRef stride,
                                 std::optional<int64_t> offset) const {
  return rf::one("aten::as_strided", "", {*this, size, stride, offset});
}
inline Tensor Tensor::select(int64_t dim, int64_t index) const {
  return rf::one("aten::select", "int", {*this, dim, index});
}
inline Tensor Tensor::slice(int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                            int64_t step) const {
  return rf::one("aten::slice", "Tensor", {*this, dim, start, end, step});
}
inline Tensor Tensor::narrow(int64_t dim, int64_t start, int64_t length) const {
  return rf::one("aten::narrow", "", {*this, dim, start, length});
}
inline Tensor Tensor::index_select(int64_t dim, const Tensor& index) const {
  return rf::one("aten::index_select", "", {*this, dim, index});
}
inline Tensor Tensor::gather(int64_t dim, const Tensor& index, bool sparse_grad) const {
  return rf::one("aten::gather", "", {*this, dim, index, sparse_grad});
}
inline std::vector<Tensor> Tensor::split(int64_t size, int64_t dim) const {
  return rf::many("aten::split", "Tensor", {*this, size, dim});
}
inline std::vector<Tensor> Tensor::chunk(int64_t chunks, int64_t dim) const {
  return rf::many("aten::chunk", "", {*this, chunks, dim});
}
inline std::vector<Tensor> Tensor::unbind(int64_t dim) const {
  return rf::many("aten::unbind", "int", {*this, dim});
}
inline Tensor Tensor::to(ScalarType type, bool non_blocking, bool copy) const {
  return rf::one("aten::to", "dtype", {*this, type, non_blocking, copy});
}
inline Tensor Tensor::to(c10::Device device, bool non_blocking, bool copy) const {
  return to(device, scalar_type(), non_blocking, copy);
}
inline Tensor Tensor::to(c10::Device device, ScalarType type, bool non_blocking, bool copy) const {
  return rf::one("aten::to", "device", {*this, device, type, non_blocking, copy});
}
inline Tensor Tensor::to(const TensorOptions& o, bool non_blocking, bool copy) const {
  return to(o.device_opt().value_or(device()), o.dtype_opt().value_or(scalar_type()), non_blocking,
            copy);
}
inline Tensor Tensor::sum(OptionalScalarType type) const {
  return rf::one("aten::sum", "", {*this, type});
}
inline Tensor Tensor::sum(OptionalInts dims, bool keepdim, OptionalScalarType type) const {
  return rf::one("aten::sum", "dim_IntList", {*this, dims, keepdim, type});
}
inline Tensor Tensor::mean(OptionalScalarType type) const {
  return rf::one("aten::mean", "", {*this, type});
}
inline Tensor Tensor::mean(OptionalInts dims, bool keepdim, OptionalScalarType type) const {
  return rf::one("aten::mean", "dim", {*this, dims, keepdim, type});
}
inline Tensor Tensor::var(int64_t dim, bool unbiased, bool keepdim) const {
  return rf::one("aten::var", "dim", {*this, IntArrayRef(dim), unbiased, keepdim});
}
inline Tensor Tensor::flip(IntArrayRef dims) const {
  return rf::one("aten::flip", "", {*this, dims});
}
inline Tensor Tensor::prod() const { return rf::one("aten::prod", "", {*this}); }
inline Tensor Tensor::max() const { return rf::one("aten::max", "", {*this}); }
inline Tensor Tensor::min() const { return rf::one("aten::min", "", {*this}); }
inline std::tuple<Tensor, Tensor> Tensor::max(int64_t dim, bool keepdim) const {
  return rf::two("aten::max", "dim", {*this, dim, keepdim});
}
inline std::tuple<Tensor, Tensor> Tensor::min(int64_t dim, bool keepdim) const {
  return rf::two("aten::min", "dim", {*this, dim, keepdim});
}
inline Tensor Tensor::amax(IntArrayRef dims, bool keepdim) const {
  return rf::one("aten::amax", "", {*this, dims, keepdim});
}
inline Tensor Tensor::amin(IntArrayRef dims, bool keepdim) const {
  return rf::one("aten::amin", "", {*this, dims, keepdim});
}
inline Tensor Tensor::argmax(std::optional<int64_t> dim, bool keepdim) const {
  return rf::one("aten::argmax", "", {*this, dim, keepdim});
}
inline Tensor Tensor::argmin(std::optional<int64_t> dim, bool keepdim) const {
  return rf::one("aten::argmin", "", {*this, dim, keepdim});
}
inline Tensor Tensor::softmax(int64_t dim, OptionalScalarType type) const {
  return rf::one("aten::softmax", "int", {*this, dim, type});
}
inline Tensor Tensor::log_softmax(int64_t dim, OptionalScalarType type) const {
  return rf::one("aten::log_softmax", "int", {*this, dim, type});
}
inline Tensor Tensor::cumsum(int64_t dim, OptionalScalarType type) const {
  return rf::one("aten::cumsum", "", {*this, dim, type});
}
inline Tensor Tensor::norm(const Scalar& p) const { return rf::one("aten::norm", "Scalar", {*this, p}); }
inline Tensor Tensor::any() const { return rf::one("aten::any", "", {*this}); }
inline Tensor Tensor::all() const { return rf::one("aten::all", "", {*this}); }
inline Tensor Tensor::addmm(const Tensor& a, const Tensor& b, const Scalar& beta,
                            const Scalar& alpha) const {
  return rf::one("aten::addmm", "", {*this, a, b, beta, alpha});
}
inline bool Tensor::equal(const Tensor& o) const {
  return rf::call("aten::equal", "", {*this, o}).integer != 0;
}

}  // namespace refinery_
}  // namespace at
