// at::Tensor as generated kernels use it: queries read the tensor, operators go through PyTorch's
// dispatcher. A name that is missing here makes the builder try PyTorch's own headers.
#pragma once

#include "accessor.h"
#include "core.h"

namespace at {
inline namespace refinery_ {

class Tensor;
using TensorList = c10::ArrayRef<Tensor>;
using ITensorListRef = TensorList;

// What the old Tensor::type() gives: enough for `x.type().is_cuda()` and AT_DISPATCH.
struct DeprecatedTypeProperties {
  c10::ScalarType type;
  c10::Device place;
  bool is_cuda() const { return place.is_cuda(); }
  c10::ScalarType scalarType() const { return type; }
  bool operator==(const DeprecatedTypeProperties& o) const {
    return type == o.type && place.type() == o.place.type();
  }
};

// One tensor in, one out: a function, a method, and both in place (name_).
#define REFINERY_UNARY(_)                                                                     \
  _(abs) _(neg) _(exp) _(exp2) _(expm1) _(log) _(log2) _(log10) _(log1p) _(sqrt) _(rsqrt)     \
  _(sigmoid) _(tanh) _(relu) _(sin) _(cos) _(tan) _(asin) _(acos) _(atan) _(sinh) _(cosh)     \
  _(floor) _(ceil) _(round) _(trunc) _(erf) _(erfc) _(reciprocal) _(square) _(sign)
// One tensor in, one out, no in-place twin.
#define REFINERY_PLAIN(_) _(isnan) _(isinf) _(isfinite) _(logical_not) _(diag) _(trace) _(inverse)
// Tensor with a tensor or a number.
#define REFINERY_COMPARE(_) _(eq, ==) _(ne, !=) _(lt, <) _(le, <=) _(gt, >) _(ge, >=)
// Two tensors in, one out.
#define REFINERY_PAIR(_)                                                                      \
  _(matmul) _(mm) _(bmm) _(mv) _(dot) _(outer) _(maximum) _(minimum) _(atan2) _(logical_and)  \
  _(logical_or)

class Tensor {
  using Dims = c10::IntArrayRef;
  using OptionalDims = std::optional<c10::IntArrayRef>;
  using OptionalType = std::optional<c10::ScalarType>;

 public:
  Tensor() = default;
  Tensor(const Tensor& o) : handle_(o.handle_) {
    if (handle_) ::refinery::retain(handle_);
  }
  Tensor(Tensor&& o) noexcept : handle_(std::exchange(o.handle_, nullptr)) {}
  Tensor& operator=(const Tensor& o) & { return *this = Tensor(o); }
  Tensor& operator=(Tensor&& o) & noexcept {
    std::swap(handle_, o.handle_);
    return *this;
  }
  Tensor& operator=(const Tensor& o) && { return copy_(o); }
  Tensor& operator=(const c10::Scalar& v) && { return fill_(v); }
  ~Tensor() {
    if (handle_) ::refinery::release(handle_);
  }
  // Takes the reference over.
  static Tensor steal(::refinery::Handle* handle) {
    Tensor t;
    t.handle_ = handle;
    return t;
  }
  ::refinery::Handle* handle() const { return handle_; }

  bool defined() const { return handle_ != nullptr; }
  void reset() { *this = Tensor(); }
  bool is_same(const Tensor& o) const { return handle_ == o.handle_; }
  int64_t use_count() const { return ::refinery::use_count(checked()); }
  Dims sizes() const {
    size_t n;
    const int64_t* all = ::refinery::sizes(checked(), &n);
    return Dims(all, n);
  }
  Dims strides() const {
    size_t n;
    const int64_t* all = ::refinery::strides(checked(), &n);
    return Dims(all, n);
  }
  int64_t size(int64_t i) const { return sizes()[wrap(i)]; }
  int64_t stride(int64_t i) const { return strides()[wrap(i)]; }
  int64_t dim() const { return static_cast<int64_t>(sizes().size()); }
  int64_t ndimension() const { return dim(); }
  int64_t numel() const { return ::refinery::numel(checked()); }
  size_t nbytes() const { return numel() * element_size(); }
  int64_t storage_offset() const { return ::refinery::storage_offset(checked()); }
  c10::ScalarType scalar_type() const {
    return static_cast<c10::ScalarType>(::refinery::dtype(checked()));
  }
  caffe2::TypeMeta dtype() const { return caffe2::TypeMeta(scalar_type()); }
  size_t element_size() const { return c10::elementSize(scalar_type()); }
  size_t itemsize() const { return element_size(); }
  c10::Device device() const {
    return c10::Device(static_cast<c10::DeviceType>(::refinery::device_type(checked())),
                       static_cast<c10::DeviceIndex>(::refinery::device_index(handle_)));
  }
  int64_t get_device() const { return device().index(); }
  DeprecatedTypeProperties type() const { return {scalar_type(), device()}; }
  c10::TensorOptions options() const { return c10::TensorOptions(scalar_type()).device(device()); }
  c10::Layout layout() const { return static_cast<c10::Layout>(::refinery::layout(checked())); }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_cpu() const { return device().is_cpu(); }
  bool is_sparse() const { return layout() == c10::Layout::Sparse; }
  bool is_floating_point() const { return c10::isFloatingType(scalar_type()); }
  bool requires_grad() const { return ::refinery::requires_grad(checked()); }
  bool is_contiguous(c10::MemoryFormat f = c10::MemoryFormat::Contiguous) const {
    return ::refinery::is_contiguous(checked(), static_cast<int>(f));
  }
  bool is_non_overlapping_and_dense() const;

  void* data_ptr() const { return ::refinery::data(checked()); }
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
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits,
            class Index = int64_t>
  GenericPackedTensorAccessor<T, N, Traits, Index> generic_packed_accessor() const& {
    check_accessor<N>();
    return {elements<T>(), sizes().data(), strides().data()};
  }
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits,
            class Index = int64_t>
  GenericPackedTensorAccessor<T, N, Traits, Index> generic_packed_accessor() && = delete;
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, Traits> packed_accessor32() const& {
    TORCH_CHECK(numel() <= std::numeric_limits<int32_t>::max(),
                "numel needs to be smaller than int32_t max; otherwise, please use "
                "packed_accessor64");
    return generic_packed_accessor<T, N, Traits, int32_t>();
  }
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, Traits> packed_accessor32() && = delete;
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, Traits> packed_accessor64() const& {
    return generic_packed_accessor<T, N, Traits, int64_t>();
  }
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, Traits> packed_accessor64() && = delete;
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits,
            class Index = int64_t>
  GenericPackedTensorAccessor<T, N, Traits, Index> packed_accessor() const& {
    return generic_packed_accessor<T, N, Traits, Index>();
  }
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits,
            class Index = int64_t>
  GenericPackedTensorAccessor<T, N, Traits, Index> packed_accessor() && = delete;
  c10::Scalar item() const;
  template <class T>
  T item() const;

#define REFINERY_METHOD(name) Tensor name() const; Tensor& name##_();
  REFINERY_UNARY(REFINERY_METHOD)
#undef REFINERY_METHOD
#define REFINERY_METHOD(name) Tensor name() const;
  REFINERY_PLAIN(REFINERY_METHOD)
#undef REFINERY_METHOD
#define REFINERY_METHOD(name, sign) \
  Tensor name(const Tensor& o) const; Tensor name(const c10::Scalar& v) const;
  REFINERY_COMPARE(REFINERY_METHOD)
#undef REFINERY_METHOD
#define REFINERY_METHOD(name) Tensor name(const Tensor& o) const;
  REFINERY_PAIR(REFINERY_METHOD)
#undef REFINERY_METHOD

  Tensor add(const Tensor& o, const c10::Scalar& alpha = 1) const;
  Tensor add(const c10::Scalar& v, const c10::Scalar& alpha = 1) const;
  Tensor sub(const Tensor& o, const c10::Scalar& alpha = 1) const;
  Tensor sub(const c10::Scalar& v, const c10::Scalar& alpha = 1) const;
  Tensor mul(const Tensor& o) const;
  Tensor mul(const c10::Scalar& v) const;
  Tensor div(const Tensor& o) const;
  Tensor div(const c10::Scalar& v) const;
  Tensor pow(const Tensor& o) const;
  Tensor pow(const c10::Scalar& v) const;
  Tensor& add_(const Tensor& o, const c10::Scalar& alpha = 1);
  Tensor& add_(const c10::Scalar& v, const c10::Scalar& alpha = 1);
  Tensor& sub_(const Tensor& o, const c10::Scalar& alpha = 1);
  Tensor& sub_(const c10::Scalar& v, const c10::Scalar& alpha = 1);
  Tensor& mul_(const Tensor& o);
  Tensor& mul_(const c10::Scalar& v);
  Tensor& div_(const Tensor& o);
  Tensor& div_(const c10::Scalar& v);
  Tensor& operator+=(const Tensor& o) { return add_(o); }
  Tensor& operator+=(const c10::Scalar& v) { return add_(v); }
  Tensor& operator-=(const Tensor& o) { return sub_(o); }
  Tensor& operator-=(const c10::Scalar& v) { return sub_(v); }
  Tensor& operator*=(const Tensor& o) { return mul_(o); }
  Tensor& operator*=(const c10::Scalar& v) { return mul_(v); }
  Tensor& operator/=(const Tensor& o) { return div_(o); }
  Tensor& operator/=(const c10::Scalar& v) { return div_(v); }
  Tensor operator-() const { return neg(); }
  Tensor operator[](int64_t i) const { return select(0, i); }

  Tensor& fill_(const c10::Scalar& v);
  Tensor& zero_();
  Tensor& copy_(const Tensor& source, bool non_blocking = false);
  Tensor& clamp_(const std::optional<c10::Scalar>& low,
                 const std::optional<c10::Scalar>& high = std::nullopt);
  Tensor& addmm_(const Tensor& a, const Tensor& b, const c10::Scalar& beta = 1,
                 const c10::Scalar& alpha = 1);
  Tensor& requires_grad_(bool on = true);
  Tensor& resize_(Dims size);
  Tensor clamp(const std::optional<c10::Scalar>& low,
               const std::optional<c10::Scalar>& high = std::nullopt) const;
  Tensor clamp_min(const c10::Scalar& v) const;
  Tensor clamp_max(const c10::Scalar& v) const;
  Tensor masked_fill(const Tensor& mask, const c10::Scalar& v) const;

  Tensor clone(std::optional<c10::MemoryFormat> f = std::nullopt) const;
  Tensor contiguous(c10::MemoryFormat f = c10::MemoryFormat::Contiguous) const;
  Tensor detach() const;
  Tensor alias() const;
  Tensor view(Dims size) const;
  Tensor view(c10::ScalarType type) const;
  Tensor view_as(const Tensor& o) const { return view(o.sizes()); }
  Tensor reshape(Dims size) const;
  Tensor reshape_as(const Tensor& o) const { return reshape(o.sizes()); }
  Tensor flatten(int64_t first = 0, int64_t last = -1) const;
  Tensor permute(Dims dims) const;
  Tensor transpose(int64_t a, int64_t b) const;
  Tensor t() const;
  Tensor squeeze() const;
  Tensor squeeze(int64_t dim) const;
  Tensor unsqueeze(int64_t dim) const;
  Tensor expand(Dims size, bool implicit = false) const;
  Tensor expand_as(const Tensor& o) const { return expand(o.sizes()); }
  Tensor repeat(Dims repeats) const;
  Tensor as_strided(Dims size, Dims stride, std::optional<int64_t> offset = std::nullopt) const;
  Tensor select(int64_t dim, int64_t index) const;
  Tensor slice(int64_t dim = 0, std::optional<int64_t> start = std::nullopt,
               std::optional<int64_t> end = std::nullopt, int64_t step = 1) const;
  Tensor narrow(int64_t dim, int64_t start, int64_t length) const;
  Tensor index_select(int64_t dim, const Tensor& index) const;
  Tensor gather(int64_t dim, const Tensor& index, bool sparse_grad = false) const;
  std::vector<Tensor> split(int64_t size, int64_t dim = 0) const;
  std::vector<Tensor> chunk(int64_t chunks, int64_t dim = 0) const;
  std::vector<Tensor> unbind(int64_t dim = 0) const;

  Tensor to(c10::ScalarType type, bool non_blocking = false, bool copy = false) const;
  Tensor to(c10::Device device, bool non_blocking = false, bool copy = false) const;
  Tensor to(c10::Device device, c10::ScalarType type, bool non_blocking = false,
            bool copy = false) const;
  Tensor to(const c10::TensorOptions& options, bool non_blocking = false, bool copy = false) const;
  Tensor to(c10::DeviceType type, bool non_blocking = false, bool copy = false) const {
    return to(c10::Device(type), non_blocking, copy);
  }
  Tensor to(caffe2::TypeMeta type) const { return to(type.toScalarType()); }
  Tensor toType(c10::ScalarType type) const { return to(type); }
  Tensor type_as(const Tensor& o) const { return to(o.options()); }
  Tensor cpu() const { return to(c10::Device(c10::kCPU)); }
  Tensor cuda() const { return to(c10::Device(c10::kCUDA)); }

  Tensor sum(OptionalType type = std::nullopt) const;
  Tensor sum(OptionalDims dims, bool keepdim = false, OptionalType type = std::nullopt) const;
  Tensor sum(int64_t dim, bool keepdim = false, OptionalType type = std::nullopt) const {
    return sum(OptionalDims(Dims(dim)), keepdim, type);
  }
  Tensor sum(std::initializer_list<int64_t> dims, bool keepdim = false,
             OptionalType type = std::nullopt) const {
    return sum(OptionalDims(Dims(dims)), keepdim, type);
  }
  Tensor mean(OptionalType type = std::nullopt) const;
  Tensor mean(OptionalDims dims, bool keepdim = false, OptionalType type = std::nullopt) const;
  Tensor mean(int64_t dim, bool keepdim = false, OptionalType type = std::nullopt) const {
    return mean(OptionalDims(Dims(dim)), keepdim, type);
  }
  Tensor mean(std::initializer_list<int64_t> dims, bool keepdim = false,
              OptionalType type = std::nullopt) const {
    return mean(OptionalDims(Dims(dims)), keepdim, type);
  }
  Tensor var(int64_t dim, bool unbiased = true, bool keepdim = false) const;
  Tensor flip(Dims dims) const;
  Tensor prod() const;
  Tensor max() const;
  Tensor min() const;
  Tensor max(const Tensor& o) const { return maximum(o); }
  Tensor min(const Tensor& o) const { return minimum(o); }
  std::tuple<Tensor, Tensor> max(int64_t dim, bool keepdim = false) const;
  std::tuple<Tensor, Tensor> min(int64_t dim, bool keepdim = false) const;
  Tensor amax(Dims dims = {}, bool keepdim = false) const;
  Tensor amin(Dims dims = {}, bool keepdim = false) const;
  Tensor argmax(std::optional<int64_t> dim = std::nullopt, bool keepdim = false) const;
  Tensor argmin(std::optional<int64_t> dim = std::nullopt, bool keepdim = false) const;
  Tensor softmax(int64_t dim, OptionalType type = std::nullopt) const;
  Tensor log_softmax(int64_t dim, OptionalType type = std::nullopt) const;
  Tensor cumsum(int64_t dim, OptionalType type = std::nullopt) const;
  Tensor norm(const c10::Scalar& p = 2) const;
  Tensor any() const;
  Tensor all() const;
  Tensor addmm(const Tensor& a, const Tensor& b, const c10::Scalar& beta = 1,
               const c10::Scalar& alpha = 1) const;
  bool equal(const Tensor& o) const;

  Tensor new_empty(Dims size, c10::TensorOptions o = {}) const;
  Tensor new_zeros(Dims size, c10::TensorOptions o = {}) const;

 private:
  ::refinery::Handle* checked() const {
    if (!handle_) throw c10::Error("tensor does not have a device");
    return handle_;
  }
  ::refinery::Handle* checked() {
    return const_cast<const Tensor*>(this)->checked();
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
  void* data_of(c10::ScalarType wanted) const {
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
  ::refinery::Handle* handle_ = nullptr;
};
static_assert(sizeof(Tensor) == sizeof(void*), "arrays of tensors are read as arrays of handles");

#define REFINERY_DATA(cpp, name)                    \
  template <>                                       \
  inline cpp* Tensor::data_ptr<cpp>() const {       \
    return static_cast<cpp*>(data_of(c10::k##name)); \
  }
REFINERY_ELEMENT_TYPES(REFINERY_DATA)
#undef REFINERY_DATA

}  // namespace refinery_
}  // namespace at

#include "functions.h"
