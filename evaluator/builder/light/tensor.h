// at::Tensor as generated kernels use it: queries read the tensor, operators go through PyTorch's
// dispatcher. A name that is missing here makes the builder try PyTorch's own headers.
#pragma once

#include "accessor.h"
#include "core.h"

namespace at {
inline namespace refinery_ {
class Tensor;
}  // namespace refinery_
}  // namespace at

namespace refinery {

inline Value value(std::nullopt_t) { return {}; }
Value value(const at::Tensor& t);
inline Value value(const c10::Scalar& s) { return s.value(); }
inline Value value(int64_t n) { return {Value::integer, nullptr, n}; }
inline Value value(bool b) { return {Value::boolean, nullptr, b}; }
inline Value value(c10::ScalarType type) { return value(static_cast<int64_t>(type)); }
inline Value value(c10::MemoryFormat f) { return value(static_cast<int64_t>(f)); }
inline Value value(const c10::Device& device) {
  Value v(Value::device, nullptr, device.index());
  v.device_type = static_cast<int32_t>(device.type());
  return v;
}
inline Value value(c10::IntArrayRef all) {
  return {Value::integers, all.data(), static_cast<int64_t>(all.size())};
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

at::Tensor one(const char* name, const char* overload, Arguments arguments);
// In place: what comes back is the first argument itself.
at::Tensor& self(const char* name, const char* overload, at::Tensor& t, Arguments arguments);

}  // namespace refinery

namespace at {
inline namespace refinery_ {
namespace rf = ::refinery;
using c10::IntArrayRef;
using c10::Scalar;
using c10::ScalarType;
using c10::TensorOptions;

// What the old Tensor::type() gives: enough for `x.type().is_cuda()` and AT_DISPATCH.
struct DeprecatedTypeProperties {
  ScalarType type;
  c10::Device place;
  bool is_cuda() const { return place.is_cuda(); }
  ScalarType scalarType() const { return type; }
  bool operator==(const DeprecatedTypeProperties& o) const {
    return type == o.type && place.type() == o.place.type();
  }
};

// One tensor in, one out: a function, a method, and both in place (name_).
#define REFINERY_UNARY(_)                                                                     \
  _(abs) _(neg) _(exp) _(exp2) _(expm1) _(log) _(log2) _(log10) _(log1p) _(sqrt) _(rsqrt)     \
  _(sigmoid) _(tanh) _(relu) _(sin) _(cos) _(tan) _(asin) _(acos) _(atan) _(sinh) _(cosh)     \
  _(floor) _(ceil) _(round) _(trunc) _(erf) _(erfc) _(reciprocal) _(square) _(sign)
// Tensor with a tensor or a number.
#define REFINERY_ARITHMETIC(_) _(add, +) _(sub, -) _(mul, *) _(div, /)
// Two tensors in, one out.
#define REFINERY_PAIR(_) _(matmul) _(mm) _(bmm) _(maximum) _(minimum)

class Tensor {
  using OptionalType = std::optional<ScalarType>;

 public:
  Tensor() = default;
  Tensor(const Tensor& o) : handle_(o.handle_) {
    if (handle_) rf::retain(handle_);
  }
  Tensor(Tensor&& o) noexcept : handle_(std::exchange(o.handle_, nullptr)) {}
  Tensor& operator=(const Tensor& o) & { return *this = Tensor(o); }
  Tensor& operator=(Tensor&& o) & noexcept {
    std::swap(handle_, o.handle_);
    return *this;
  }
  Tensor& operator=(const Tensor& o) && { return copy_(o); }
  Tensor& operator=(const Scalar& v) && { return fill_(v); }
  ~Tensor() {
    if (handle_) rf::release(handle_);
  }
  // Takes the reference over.
  static Tensor steal(rf::Handle* handle) {
    Tensor t;
    t.handle_ = handle;
    return t;
  }
  rf::Handle* handle() const { return handle_; }

  bool defined() const { return handle_ != nullptr; }
  IntArrayRef sizes() const {
    size_t n;
    const int64_t* all = rf::sizes(checked(), &n);
    return IntArrayRef(all, n);
  }
  IntArrayRef strides() const {
    size_t n;
    const int64_t* all = rf::strides(checked(), &n);
    return IntArrayRef(all, n);
  }
  int64_t size(int64_t i) const { return sizes()[wrap(i)]; }
  int64_t stride(int64_t i) const { return strides()[wrap(i)]; }
  int64_t dim() const { return static_cast<int64_t>(sizes().size()); }
  int64_t ndimension() const { return dim(); }
  int64_t numel() const { return rf::numel(checked()); }
  size_t nbytes() const { return numel() * element_size(); }
  ScalarType scalar_type() const { return static_cast<ScalarType>(rf::dtype(checked())); }
  caffe2::TypeMeta dtype() const { return caffe2::TypeMeta(scalar_type()); }
  size_t element_size() const { return c10::elementSize(scalar_type()); }
  size_t itemsize() const { return element_size(); }
  c10::Device device() const {
    return c10::Device(static_cast<c10::DeviceType>(rf::device_type(checked())),
                       static_cast<c10::DeviceIndex>(rf::device_index(handle_)));
  }
  int64_t get_device() const { return device().index(); }
  DeprecatedTypeProperties type() const { return {scalar_type(), device()}; }
  TensorOptions options() const { return TensorOptions(scalar_type()).device(device()); }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_cpu() const { return device().is_cpu(); }
  bool is_floating_point() const { return c10::isFloatingType(scalar_type()); }
  bool requires_grad() const { return rf::requires_grad(checked()); }
  bool is_contiguous(c10::MemoryFormat f = c10::MemoryFormat::Contiguous) const {
    return rf::is_contiguous(checked(), static_cast<int>(f));
  }

  void* data_ptr() const { return rf::data(checked()); }
  void* mutable_data_ptr() const { return data_ptr(); }
  const void* const_data_ptr() const { return data_ptr(); }
  // Declared for every type and, as in PyTorch, defined for those of elements: the linker tells of
  // others.
  template <class T>
  T* data_ptr() const;
  template <class T>
  T* data() const { return data_ptr<T>(); }
  template <class T>
  T* mutable_data_ptr() const { return data_ptr<T>(); }
  template <class T>
  const std::remove_const_t<T>* const_data_ptr() const {
    return data_ptr<std::remove_const_t<T>>();
  }
  // Accessors point into the tensor, so there are none of one that is gone at once.
  template <class T, size_t N>
  TensorAccessor<T, N> accessor() const& {
    check_accessor<N>();
    return TensorAccessor<T, N>(elements<T>(), sizes().data(), strides().data());
  }
  template <class T, size_t N>
  TensorAccessor<T, N> accessor() && = delete;
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, Traits> packed_accessor32() const& {
    TORCH_CHECK(numel() <= std::numeric_limits<int32_t>::max(),
                "numel needs to be smaller than int32_t max; otherwise, please use "
                "packed_accessor64");
    check_accessor<N>();
    return {elements<T>(), sizes().data(), strides().data()};
  }
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, Traits> packed_accessor32() && = delete;
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, Traits> packed_accessor64() const& {
    check_accessor<N>();
    return {elements<T>(), sizes().data(), strides().data()};
  }
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, Traits> packed_accessor64() && = delete;
  Scalar item() const {
    const auto r = rf::number(checked());
    return is_floating_point() ? Scalar(r.real)
           : scalar_type() == c10::kBool ? Scalar(r.integer != 0) : Scalar(r.integer);
  }
  template <class T>
  T item() const;

#define REFINERY_METHOD(name)                                         \
  Tensor name() const { return rf::one("aten::" #name, "", {*this}); } \
  Tensor& name##_() { return rf::self("aten::" #name "_", "", *this, {*this}); }
  REFINERY_UNARY(REFINERY_METHOD)
#undef REFINERY_METHOD
#define REFINERY_METHOD(name, sign)                                                              \
  Tensor name(const Tensor& o) const { return rf::one("aten::" #name, "Tensor", {*this, o}); }   \
  Tensor name(const Scalar& v) const { return rf::one("aten::" #name, "Scalar", {*this, v}); }   \
  Tensor& name##_(const Tensor& o) {                                                             \
    return rf::self("aten::" #name "_", "Tensor", *this, {*this, o});                            \
  }                                                                                              \
  Tensor& name##_(const Scalar& v) {                                                             \
    return rf::self("aten::" #name "_", "Scalar", *this, {*this, v});                            \
  }                                                                                              \
  Tensor& operator sign##=(const Tensor& o) { return name##_(o); }                               \
  Tensor& operator sign##=(const Scalar& v) { return name##_(v); }
  REFINERY_ARITHMETIC(REFINERY_METHOD)
#undef REFINERY_METHOD
#define REFINERY_METHOD(name) \
  Tensor name(const Tensor& o) const { return rf::one("aten::" #name, "", {*this, o}); }
  REFINERY_PAIR(REFINERY_METHOD)
#undef REFINERY_METHOD
  Tensor operator-() const { return neg(); }
  Tensor operator[](int64_t i) const { return select(0, i); }

  Tensor& fill_(const Scalar& v) { return rf::self("aten::fill_", "Scalar", *this, {*this, v}); }
  Tensor& zero_() { return rf::self("aten::zero_", "", *this, {*this}); }
  Tensor& copy_(const Tensor& source, bool non_blocking = false) {
    return rf::self("aten::copy_", "", *this, {*this, source, non_blocking});
  }
  Tensor& requires_grad_(bool on = true) {
    return rf::self("aten::requires_grad_", "", *this, {*this, on});
  }
  Tensor clamp(const std::optional<Scalar>& low,
               const std::optional<Scalar>& high = std::nullopt) const {
    return rf::one("aten::clamp", "", {*this, low, high});
  }
  Tensor clamp_min(const Scalar& v) const { return rf::one("aten::clamp_min", "", {*this, v}); }
  Tensor clamp_max(const Scalar& v) const { return rf::one("aten::clamp_max", "", {*this, v}); }

  Tensor clone(std::optional<c10::MemoryFormat> f = std::nullopt) const {
    return rf::one("aten::clone", "", {*this, f});
  }
  Tensor contiguous(c10::MemoryFormat f = c10::MemoryFormat::Contiguous) const {
    return is_contiguous(f) ? *this : rf::one("aten::contiguous", "", {*this, f});
  }
  Tensor detach() const { return rf::one("aten::detach", "", {*this}); }
  Tensor view(IntArrayRef size) const { return rf::one("aten::view", "", {*this, size}); }
  Tensor view_as(const Tensor& o) const { return view(o.sizes()); }
  Tensor reshape(IntArrayRef size) const { return rf::one("aten::reshape", "", {*this, size}); }
  Tensor reshape_as(const Tensor& o) const { return reshape(o.sizes()); }
  Tensor flatten(int64_t first = 0, int64_t last = -1) const {
    return rf::one("aten::flatten", "using_ints", {*this, first, last});
  }
  Tensor permute(IntArrayRef dims) const { return rf::one("aten::permute", "", {*this, dims}); }
  Tensor transpose(int64_t a, int64_t b) const {
    return rf::one("aten::transpose", "int", {*this, a, b});
  }
  Tensor t() const { return rf::one("aten::t", "", {*this}); }
  Tensor squeeze() const { return rf::one("aten::squeeze", "", {*this}); }
  Tensor squeeze(int64_t dim) const { return rf::one("aten::squeeze", "dim", {*this, dim}); }
  Tensor unsqueeze(int64_t dim) const { return rf::one("aten::unsqueeze", "", {*this, dim}); }
  Tensor expand(IntArrayRef size, bool implicit = false) const {
    return rf::one("aten::expand", "", {*this, size, implicit});
  }
  Tensor expand_as(const Tensor& o) const { return expand(o.sizes()); }
  Tensor select(int64_t dim, int64_t index) const {
    return rf::one("aten::select", "int", {*this, dim, index});
  }
  Tensor slice(int64_t dim = 0, std::optional<int64_t> start = std::nullopt,
               std::optional<int64_t> end = std::nullopt, int64_t step = 1) const {
    return rf::one("aten::slice", "Tensor", {*this, dim, start, end, step});
  }

  Tensor to(ScalarType type, bool non_blocking = false, bool copy = false) const {
    return rf::one("aten::to", "dtype", {*this, type, non_blocking, copy});
  }
  Tensor to(c10::Device device, ScalarType type, bool non_blocking = false,
            bool copy = false) const {
    return rf::one("aten::to", "device", {*this, device, type, non_blocking, copy});
  }
  Tensor to(c10::Device device, bool non_blocking = false, bool copy = false) const {
    return to(device, scalar_type(), non_blocking, copy);
  }
  Tensor to(c10::DeviceType type, bool non_blocking = false, bool copy = false) const {
    return to(c10::Device(type), non_blocking, copy);
  }
  Tensor to(const TensorOptions& o, bool non_blocking = false, bool copy = false) const {
    return to(o.device_opt().value_or(device()), o.dtype_opt().value_or(scalar_type()),
              non_blocking, copy);
  }
  Tensor to(caffe2::TypeMeta type) const { return to(type.toScalarType()); }
  Tensor toType(ScalarType type) const { return to(type); }
  Tensor type_as(const Tensor& o) const { return to(o.options()); }
  Tensor cpu() const { return to(c10::kCPU); }
  Tensor cuda() const { return to(c10::kCUDA); }

  Tensor sum(OptionalType type = std::nullopt) const {
    return rf::one("aten::sum", "", {*this, type});
  }
  Tensor sum(IntArrayRef dims, bool keepdim = false, OptionalType type = std::nullopt) const {
    return rf::one("aten::sum", "dim_IntList", {*this, dims, keepdim, type});
  }
  Tensor mean(OptionalType type = std::nullopt) const {
    return rf::one("aten::mean", "", {*this, type});
  }
  Tensor mean(IntArrayRef dims, bool keepdim = false, OptionalType type = std::nullopt) const {
    return rf::one("aten::mean", "dim", {*this, dims, keepdim, type});
  }
  Tensor max() const { return rf::one("aten::max", "", {*this}); }
  Tensor min() const { return rf::one("aten::min", "", {*this}); }
  Tensor amax(IntArrayRef dims = {}, bool keepdim = false) const {
    return rf::one("aten::amax", "", {*this, dims, keepdim});
  }
  Tensor amin(IntArrayRef dims = {}, bool keepdim = false) const {
    return rf::one("aten::amin", "", {*this, dims, keepdim});
  }
  Tensor argmax(std::optional<int64_t> dim = std::nullopt, bool keepdim = false) const {
    return rf::one("aten::argmax", "", {*this, dim, keepdim});
  }
  Tensor argmin(std::optional<int64_t> dim = std::nullopt, bool keepdim = false) const {
    return rf::one("aten::argmin", "", {*this, dim, keepdim});
  }
  std::tuple<Tensor, Tensor> max(int64_t dim, bool keepdim = false) const {
    return {amax(dim, keepdim), argmax(dim, keepdim)};
  }
  std::tuple<Tensor, Tensor> min(int64_t dim, bool keepdim = false) const {
    return {amin(dim, keepdim), argmin(dim, keepdim)};
  }
  Tensor cumsum(int64_t dim) const { return rf::one("aten::cumsum", "", {*this, dim}); }

 private:
  rf::Handle* checked() const {
    if (!handle_) throw c10::Error("tensor does not have a device");
    return handle_;
  }
  size_t wrap(int64_t i) const {
    const int64_t n = dim();
    if (i < -n || i >= n) {
      throw c10::Error(c10::Error::index,
                       c10::str("Dimension out of range (expected to be in range of [", -n, ", ",
                                n - 1, "], but got ", i, ")"));
    }
    return static_cast<size_t>(i < 0 ? i + n : i);
  }
  void* data_of(ScalarType wanted) const {
    TORCH_CHECK(scalar_type() == wanted, "expected scalar type ", wanted, " but found ",
                scalar_type());
    return data_ptr();
  }
  template <class T>
  T* elements() const {
    return data_ptr<std::remove_const_t<T>>();
  }
  template <size_t N>
  void check_accessor() const {
    static_assert(N > 0, "accessor is used for indexing tensor, for scalars use *data_ptr<T>()");
    TORCH_CHECK(dim() == static_cast<int64_t>(N), "TensorAccessor expected ", N, " dims but tensor has ",
                dim());
  }
  rf::Handle* handle_ = nullptr;
};

#define REFINERY_ELEMENT(cpp, name)                                            \
  template <>                                                                  \
  inline cpp* Tensor::data_ptr<cpp>() const {                                  \
    return static_cast<cpp*>(data_of(c10::k##name));                           \
  }
REFINERY_ELEMENT_TYPES(REFINERY_ELEMENT)
#undef REFINERY_ELEMENT
#define REFINERY_ITEM(cpp, name) \
  template <>                    \
  inline cpp Tensor::item<cpp>() const { return item().to<cpp>(); }
REFINERY_LITERAL_TYPES(REFINERY_ITEM)
#undef REFINERY_ITEM

#define REFINERY_FUNCTION(name)                            \
  inline Tensor name(const Tensor& x) { return x.name(); } \
  inline Tensor& name##_(Tensor& x) { return x.name##_(); }
REFINERY_UNARY(REFINERY_FUNCTION)
#undef REFINERY_FUNCTION
#define REFINERY_FUNCTION(name, sign)                                                        \
  inline Tensor name(const Tensor& a, const Tensor& b) { return a.name(b); }                 \
  inline Tensor name(const Tensor& a, const Scalar& b) { return a.name(b); }                 \
  inline Tensor operator sign(const Tensor& a, const Tensor& b) { return a.name(b); }        \
  inline Tensor operator sign(const Tensor& a, const Scalar& b) { return a.name(b); }
REFINERY_ARITHMETIC(REFINERY_FUNCTION)
#undef REFINERY_FUNCTION
#define REFINERY_FUNCTION(name) \
  inline Tensor name(const Tensor& a, const Tensor& b) { return a.name(b); }
REFINERY_PAIR(REFINERY_FUNCTION)
#undef REFINERY_FUNCTION
inline Tensor operator+(const Scalar& a, const Tensor& b) { return b.add(a); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return b.mul(a); }
inline Tensor operator-(const Scalar& a, const Tensor& b) {
  return rf::one("aten::rsub", "Scalar", {b, a});
}
inline Tensor operator/(const Scalar& a, const Tensor& b) { return b.reciprocal().mul(a); }

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
inline Tensor empty_like(const Tensor& x, const TensorOptions& o = {},
                         std::optional<c10::MemoryFormat> f = std::nullopt) {
  return rf::one("aten::empty_like", "", {x, o.dtype_opt(), std::nullopt, o.device_opt(),
                 std::nullopt, f ? f : o.memory_format_opt()});
}
inline Tensor zeros_like(const Tensor& x, const TensorOptions& o = {}) {
  return empty_like(x, o).zero_();
}
inline Tensor ones_like(const Tensor& x, const TensorOptions& o = {}) {
  return empty_like(x, o).fill_(1);
}
inline Tensor full_like(const Tensor& x, const Scalar& v, const TensorOptions& o = {}) {
  return empty_like(x, o).fill_(v);
}
inline std::optional<c10::Device> device_of(const Tensor& x) {
  return x.defined() ? std::make_optional(x.device()) : std::nullopt;
}

// Functions that are a method with its first argument in front.
inline Tensor sum(const Tensor& x) { return x.sum(); }
inline Tensor sum(const Tensor& x, IntArrayRef dims, bool keepdim = false) {
  return x.sum(dims, keepdim);
}
inline Tensor mean(const Tensor& x) { return x.mean(); }
inline Tensor mean(const Tensor& x, IntArrayRef dims, bool keepdim = false) {
  return x.mean(dims, keepdim);
}
inline Tensor clamp(const Tensor& x, const std::optional<Scalar>& low,
                    const std::optional<Scalar>& high = std::nullopt) {
  return x.clamp(low, high);
}
inline Tensor clamp_min(const Tensor& x, const Scalar& v) { return x.clamp_min(v); }
inline Tensor cumsum(const Tensor& x, int64_t dim) { return x.cumsum(dim); }
inline Tensor transpose(const Tensor& x, int64_t a, int64_t b) { return x.transpose(a, b); }
inline Tensor addmm(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta = 1,
                    const Scalar& alpha = 1) {
  return rf::one("aten::addmm", "", {c, a, b, beta, alpha});
}
}  // namespace refinery_
}  // namespace at

namespace refinery {
inline Value value(const at::Tensor& t) { return {Value::tensor, t.handle(), 1}; }
inline at::Tensor one(const char* name, const char* overload, Arguments arguments) {
  return at::Tensor::steal(call(name, overload, arguments.begin(), arguments.size()));
}
inline at::Tensor& self(const char* name, const char* overload, at::Tensor& t,
                        Arguments arguments) {
  release(call(name, overload, arguments.begin(), arguments.size()));
  return t;
}
}  // namespace refinery
