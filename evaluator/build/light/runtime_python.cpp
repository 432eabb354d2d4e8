// The part of runtime.h that speaks with Python: apart, because these headers are the slowest.
#include <torch/csrc/Dtype.h>
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

int dtype_from_python(PyObject* object) {
  if (!THPDtype_Check(object)) return -1;
  return static_cast<int>(reinterpret_cast<THPDtype*>(object)->scalar_type);
}

}  // namespace refinery
