// runtime.h over PyTorch's own headers: compiled once a machine, linked into every library.
#include "runtime.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>

namespace refinery {
namespace {

c10::TensorImpl* impl(const Handle* handle) {
  return reinterpret_cast<c10::TensorImpl*>(const_cast<Handle*>(handle));
}

at::Tensor borrowed(const Handle* handle) {
  if (handle == nullptr) return {};
  return at::Tensor(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(
      impl(handle)));
}

Handle* owned(at::Tensor tensor) {
  if (!tensor.defined()) return nullptr;
  return reinterpret_cast<Handle*>(tensor.unsafeReleaseTensorImpl());
}

// Candidates catch, and their callers see, the message without PyTorch's own stack.
template <class F>
auto guarded(F&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const c10::IndexError& e) {
    throw Failure(Failure::index, e.what_without_backtrace());
  } catch (const c10::ValueError& e) {
    throw Failure(Failure::value, e.what_without_backtrace());
  } catch (const c10::TypeError& e) {
    throw Failure(Failure::type, e.what_without_backtrace());
  } catch (const c10::NotImplementedError& e) {
    throw Failure(Failure::not_implemented, e.what_without_backtrace());
  } catch (const c10::Error& e) {
    throw Failure(e.what_without_backtrace());
  }
}

c10::IValue ivalue(const Value& value, c10::TypePtr type) {
  if (auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  const bool wants_list = type->kind() == c10::TypeKind::ListType;
  switch (value.tag) {
    case Value::none:
      return {};
    case Value::tensor:
      return borrowed(static_cast<const Handle*>(value.data));
    case Value::integer:
      if (wants_list) return std::vector<int64_t>{value.number};
      if (type->kind() == c10::TypeKind::FloatType) return static_cast<double>(value.number);
      return value.number;
    case Value::real:
      return value.fraction;
    case Value::boolean:
      return value.number != 0;
    case Value::integers: {
      auto first = static_cast<const int64_t*>(value.data);
      return std::vector<int64_t>(first, first + value.number);
    }
    case Value::device:
      return c10::Device(static_cast<c10::DeviceType>(value.device_type),
                         static_cast<c10::DeviceIndex>(value.number));
  }
  return {};
}

}  // namespace

Handle* call(const char* name, const char* overload, const Value* arguments, size_t count) {
  return guarded([&] {
    auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
    const auto& expected = op.schema().arguments();
    c10::Stack stack;
    stack.reserve(expected.size());
    for (size_t i = 0; i < expected.size(); i++) {
      if (i < count) {
        stack.push_back(ivalue(arguments[i], expected[i].type()));
      } else if (auto fallback = expected[i].default_value()) {
        stack.push_back(*fallback);
      } else {
        stack.emplace_back();
      }
    }
    op.callBoxed(stack);
    return owned(std::move(stack.at(0)).toTensor());
  });
}

Number number(const Handle* handle) {
  return guarded([&] {
    const at::Scalar element = borrowed(handle).item();
    if (element.isFloatingPoint()) return Number{element.toDouble(), 0};
    return Number{0, element.isBoolean() ? element.toBool() : element.toLong()};
  });
}

void retain(Handle* handle) { c10::raw::intrusive_ptr::incref(impl(handle)); }

void release(Handle* handle) { c10::raw::intrusive_ptr::decref(impl(handle)); }

const int64_t* sizes(const Handle* handle, size_t* count) {
  auto all = impl(handle)->sizes();
  *count = all.size();
  return all.data();
}

const int64_t* strides(const Handle* handle, size_t* count) {
  auto all = impl(handle)->strides();
  *count = all.size();
  return all.data();
}

int64_t numel(const Handle* handle) { return impl(handle)->numel(); }

int dtype(const Handle* handle) {
  return static_cast<int>(c10::typeMetaToScalarType(impl(handle)->dtype()));
}

int device_type(const Handle* handle) { return static_cast<int>(impl(handle)->device_type()); }

int device_index(const Handle* handle) { return impl(handle)->device().index(); }

bool is_contiguous(const Handle* handle, int memory_format) {
  return impl(handle)->is_contiguous(static_cast<c10::MemoryFormat>(memory_format));
}

bool requires_grad(const Handle* handle) { return impl(handle)->requires_grad(); }

void* data(Handle* handle) {
  return guarded([&] { return impl(handle)->mutable_data(); });
}

Handle* empty(const int64_t* sizes, size_t count, int dtype, int device_type, int device_index,
              bool pinned, int memory_format) {
  return guarded([&] {
    auto options = at::TensorOptions().pinned_memory(pinned);
    if (dtype >= 0) options = options.dtype(static_cast<c10::ScalarType>(dtype));
    if (device_type >= 0) {
      options = options.device(c10::Device(static_cast<c10::DeviceType>(device_type),
                                           static_cast<c10::DeviceIndex>(device_index)));
    }
    auto format = memory_format < 0
                      ? std::nullopt
                      : std::optional(static_cast<c10::MemoryFormat>(memory_format));
    return owned(at::empty(at::IntArrayRef(sizes, count), options, format));
  });
}

size_t element_size(int dtype) { return c10::elementSize(static_cast<c10::ScalarType>(dtype)); }

const char* dtype_name(int dtype) { return c10::toString(static_cast<c10::ScalarType>(dtype)); }

std::string_view type_name(int dtype) {
  return c10::scalarTypeToTypeMeta(static_cast<c10::ScalarType>(dtype)).name();
}

int num_threads() { return at::get_num_threads(); }

}  // namespace refinery
