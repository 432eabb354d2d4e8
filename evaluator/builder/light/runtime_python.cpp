// The part of runtime.h that speaks with Python: apart, because these headers are the slowest.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/autograd/python_variable.h>

#include "runtime.h"

namespace refinery {

Handle* from_python(PyObject* object) {
  if (!THPVariable_Check(object)) return nullptr;
  at::Tensor tensor = THPVariable_Unpack(object);
  return reinterpret_cast<Handle*>(tensor.unsafeReleaseTensorImpl());
}

PyObject* to_python(Handle* handle) {
  using Pointer = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  if (handle == nullptr) return THPVariable_Wrap(at::Tensor());
  return THPVariable_Wrap(
      at::Tensor(Pointer::reclaim_copy(reinterpret_cast<c10::TensorImpl*>(handle))));
}

namespace {
template <class T>
bool load(PyObject* object, bool convert, T& out) {
  pybind11::detail::make_caster<T> caster;
  try {
    if (!caster.load(object, convert)) return false;
  } catch (pybind11::error_already_set& error) {
    error.restore();
    return false;
  }
  out = pybind11::detail::cast_op<T&&>(std::move(caster));
  return true;
}
}  // namespace

bool read(PyObject* object, bool convert, bool& out) { return load(object, convert, out); }
bool read(PyObject* object, bool convert, long long& out) { return load(object, convert, out); }
bool read(PyObject* object, bool convert, unsigned long long& out) {
  return load(object, convert, out);
}
bool read(PyObject* object, bool convert, double& out) { return load(object, convert, out); }
bool read(PyObject* object, bool convert, std::string& out) { return load(object, convert, out); }
bool read(PyObject* object, bool convert, std::vector<PyObject*>& out) {
  std::vector<pybind11::object> items;
  if (!load(object, convert, items)) return false;
  for (auto& item : items) out.push_back(item.release().ptr());
  return true;
}

}  // namespace refinery
