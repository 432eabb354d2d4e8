// What a candidate's compiled code asks of PyTorch, as plain functions over an opaque tensor.
//
// The other headers of this folder are read by every candidate's compiler, so they must be cheap:
// they include nothing of PyTorch but the number types. What needs PyTorch's own headers is behind
// the functions below, in runtime.cpp and runtime_python.cpp, which are compiled once a machine and
// linked into every candidate's library.
//
// A Handle* is a TensorImpl with one reference that its owner must give back with release().
#pragma once

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

typedef struct _object PyObject;

namespace refinery {

struct Handle;

// A failure with the Python exception that it becomes.
struct Failure : std::runtime_error {
  enum Kind { runtime, index, value, type, not_implemented };
  Failure(Kind what_kind, const std::string& message)
      : std::runtime_error(message), kind(what_kind) {}
  explicit Failure(const std::string& message) : Failure(runtime, message) {}
  const char* what_without_backtrace() const noexcept { return what(); }
  std::string msg() const { return what(); }
  Kind kind;
};

// One argument of an operator. Borrows what it points to. tensor.h says which types convert.
struct Value {
  enum Tag { none, tensor, integer, real, boolean, integers, device };
  Value() = default;
  Value(Tag what_tag, const void* what_data, int64_t what_number)
      : tag(what_tag), number(what_number), data(what_data) {}
  Tag tag = none;
  int64_t number = 0;        // integer, boolean, device index, or how many there are
  double fraction = 0;       // real
  const void* data = nullptr;  // Handle*, int64_t[]
  int32_t device_type = 0;
};

// Calls an operator through PyTorch's dispatcher: the one tensor that it returns, owned. Missing
// trailing arguments take their defaults.
Handle* call(const char* name, const char* overload, const Value* arguments, size_t count);
// The element of a tensor that has one. `real` is of floating types, `integer` of others.
struct Number {
  double real;
  int64_t integer;
};
Number number(const Handle*);

void retain(Handle*);
void release(Handle*);
const int64_t* sizes(const Handle*, size_t* count);
const int64_t* strides(const Handle*, size_t* count);
int64_t numel(const Handle*);
int dtype(const Handle*);
int device_type(const Handle*);
int device_index(const Handle*);
bool is_contiguous(const Handle*, int memory_format);
bool requires_grad(const Handle*);
void* data(Handle*);
// New storage, not initialised. -1 for dtype or device type: PyTorch's default.
Handle* empty(const int64_t* sizes, size_t count, int dtype, int device_type, int device_index,
              bool pinned, int memory_format);
size_t element_size(int dtype);
const char* dtype_name(int dtype);
std::string_view type_name(int dtype);  // of the type in C++
int num_threads();

// Python objects. from_python gives nullptr for what is no tensor.
Handle* from_python(PyObject*);
PyObject* to_python(Handle*);
// What pybind11 itself makes of an argument; with `convert` also of one of another type, which is for
// when no overload takes it as it is. False: not one; there may be a Python error.
bool read(PyObject*, bool convert, bool&);
bool read(PyObject*, bool convert, long long&);
bool read(PyObject*, bool convert, unsigned long long&);
bool read(PyObject*, bool convert, double&);
bool read(PyObject*, bool convert, std::string&);
// The items, owned, of what it takes for a std::vector.
bool read(PyObject*, bool convert, std::vector<PyObject*>&);

}  // namespace refinery
