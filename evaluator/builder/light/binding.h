// Calls from Python into C++: the part of pybind11 that generated bindings use, over CPython's API.
//
// `m.def("name", function, "doc", py::arg("x"), py::arg("eps") = 1e-5)` reads the parameter types
// off the function pointer. Classes, numpy arrays and Python objects as arguments are not here: the
// compiler then says so, in this file, and the builder tries PyTorch's own headers.
//
// What depends on no type of the candidate's is in binding.cpp, compiled once.
#pragma once

#include <Python.h>

#include "tensor.h"

namespace refinery {

PyObject* make_list(const std::vector<PyObject*>& owned_items);
PyObject* make_tuple(std::initializer_list<PyObject*> owned_items);
// How a parameter's type is called in messages, in three parts: `Sequence[`, `int`, `]`.
struct TypeName {
  const char* before;
  const char* name;
  const char* after;
};

// Read<T>: a Python object as a T (false: not one), and a T as a new reference. As in pybind11, what
// is of another type is converted only where `convert` says so.
template <class T, class = void>
struct Read {
  static_assert(!std::is_same_v<T, T>, "this type needs PyTorch's own bindings");
};
template <>
struct Read<at::Tensor> {
  static constexpr TypeName type{"", "torch.Tensor", ""};
  static bool from(PyObject* o, bool, at::Tensor& out) {
    Handle* handle = from_python(o);
    if (handle) out = at::Tensor::steal(handle);
    return handle;
  }
  static PyObject* to(const at::Tensor& t) { return to_python(t.handle()); }
};
template <>
struct Read<bool> {
  static constexpr TypeName type{"", "bool", ""};
  static bool from(PyObject* o, bool convert, bool& out) { return read(o, convert, out); }
  static PyObject* to(bool v) { return PyBool_FromLong(v); }
};
template <class T>
constexpr bool is_letter = std::is_same_v<T, char> || std::is_same_v<T, wchar_t> ||
                           std::is_same_v<T, char16_t> || std::is_same_v<T, char32_t>;
template <class T>
struct Read<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool> &&
                                !is_letter<T>>> {
  using Widest = std::conditional_t<std::is_signed_v<T>, long long, unsigned long long>;
  static constexpr TypeName type{"", "int", ""};
  static bool from(PyObject* o, bool convert, T& out) {
    Widest v;
    if (!read(o, convert, v)) return false;
    out = static_cast<T>(v);
    return static_cast<Widest>(out) == v;
  }
  static PyObject* to(T v) {
    return std::is_signed_v<T> ? PyLong_FromLongLong(static_cast<long long>(v))
                               : PyLong_FromUnsignedLongLong(v);
  }
};
template <class T>
struct Read<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  static constexpr TypeName type{"", "float", ""};
  static bool from(PyObject* o, bool convert, T& out) {
    double v;
    if (!read(o, convert, v)) return false;
    out = static_cast<T>(v);
    return true;
  }
  static PyObject* to(T v) { return PyFloat_FromDouble(v); }
};
template <>
struct Read<std::string> {
  static constexpr TypeName type{"", "str", ""};
  static bool from(PyObject* o, bool convert, std::string& out) { return read(o, convert, out); }
  static PyObject* to(const std::string& v) {
    return PyUnicode_FromStringAndSize(v.data(), static_cast<Py_ssize_t>(v.size()));
  }
};
template <class T>
struct Read<std::optional<T>> {
  static constexpr TypeName type{"", Read<T>::type.name, " | None"};
  static bool from(PyObject* o, bool convert, std::optional<T>& out) {
    if (o == Py_None) return out.reset(), true;
    T inner{};
    if (!Read<T>::from(o, convert, inner)) return false;
    out = std::move(inner);
    return true;
  }
  static PyObject* to(const std::optional<T>& v) {
    return v ? Read<T>::to(*v) : Py_NewRef(Py_None);
  }
};
template <class T>
struct Read<std::vector<T>> {
  static constexpr TypeName type{"Sequence[", Read<T>::type.name, "]"};
  static bool from(PyObject* o, bool convert, std::vector<T>& out) {
    std::vector<PyObject*> items;
    if (!read(o, convert, items)) return false;
    bool fits = true;
    out.clear();
    for (PyObject* item : items) {
      T inner{};
      fits = fits && Read<T>::from(item, convert, inner);
      out.push_back(std::move(inner));
      Py_DECREF(item);
    }
    return fits;
  }
  static PyObject* to(const std::vector<T>& all) {
    std::vector<PyObject*> items;
    for (const auto& item : all) items.push_back(Read<T>::to(item));
    return make_list(items);
  }
};
template <class... T>
struct Read<std::tuple<T...>> {
  static PyObject* to(const std::tuple<T...>& all) {
    return std::apply(
        [](const auto&... item) {
          return make_tuple({Read<std::decay_t<decltype(item)>>::to(item)...});
        },
        all);
  }
};
// Hands a stored argument over in the way that the function takes it.
template <class A, class S>
decltype(auto) pass(S& stored) {
  if constexpr (std::is_lvalue_reference_v<A>) {
    return static_cast<S&>(stored);
  } else {
    return std::move(stored);
  }
}

// One C++ function, behind a call with exactly its number of arguments.
struct Overload {
  virtual ~Overload() = default;
  // nullptr without a Python error: the arguments do not fit.
  virtual PyObject* invoke(PyObject* const* arguments, bool convert) = 0;
  const TypeName* types = nullptr;
  size_t count = 0;
};

// What follows the function in m.def: a doc string, or a parameter's name with its default.
struct Extra {
  enum Kind { nothing, doc, parameter } kind = nothing;
  const char* text = "";
  PyObject* fallback = nullptr;  // owned
};

// Adds an overload, which it takes over, to the module's function of that name.
void define(PyObject* module, const char* name, Overload* overload, const Extra* extras,
            size_t count);
// Turns the C++ exception in flight into Python's, with the message as it is; gives nullptr.
PyObject* translate();
PyObject* make_module(PyModuleDef& definition, const char* name, int (*fill)(PyObject*));

template <class F, class R, class... A>
struct Bound final : Overload {
  explicit Bound(F f) : function(std::move(f)) {
    static constexpr TypeName all[] = {Read<std::decay_t<A>>::type..., TypeName{}};
    types = all;
    count = sizeof...(A);
  }
  PyObject* invoke(PyObject* const* arguments, bool convert) override {
    return invoke(arguments, convert, std::index_sequence_for<A...>{});
  }
  template <size_t... I>
  PyObject* invoke([[maybe_unused]] PyObject* const* arguments, [[maybe_unused]] bool convert,
                   std::index_sequence<I...>) {
    std::tuple<std::decay_t<A>...> stored;
    if (!(Read<std::decay_t<A>>::from(arguments[I], convert, std::get<I>(stored)) && ...)) return nullptr;
    if constexpr (std::is_void_v<R>) {
      function(pass<A>(std::get<I>(stored))...);
    } else {
      return Read<std::decay_t<R>>::to(function(pass<A>(std::get<I>(stored))...));
    }
    return Py_NewRef(Py_None);
  }
  F function;
};
template <class R, class... A>
Overload* bound(R (*f)(A...)) {
  return new Bound<R (*)(A...), R, A...>(f);
}
template <class F, class R, class... A>
Overload* bound_lambda(F f, R (F::*)(A...) const) {
  return new Bound<F, R, A...>(std::move(f));
}
template <class F, class = decltype(&F::operator())>
Overload* bound(F f) {
  return bound_lambda(std::move(f), &F::operator());
}

}  // namespace refinery

namespace pybind11 {
inline namespace refinery_ {

struct gil_scoped_release {
  PyThreadState* state = PyEval_SaveThread();
  gil_scoped_release() = default;
  gil_scoped_release(const gil_scoped_release&) = delete;
  ~gil_scoped_release() { PyEval_RestoreThread(state); }
};
struct none {};

inline PyObject* object_from(none) { return Py_NewRef(Py_None); }
inline PyObject* object_from(const char* text) { return PyUnicode_FromString(text); }
template <class T>
PyObject* object_from(const T& v) { return ::refinery::Read<T>::to(v); }

struct arg_v {
  const char* name;
  PyObject* fallback;
};
struct arg {
  explicit arg(const char* n) : name(n) {}
  template <class T>
  arg_v operator=(const T& v) const { return {name, object_from(v)}; }
  const char* name;
};

inline ::refinery::Extra extra(const char* doc) { return {::refinery::Extra::doc, doc, nullptr}; }
inline ::refinery::Extra extra(const arg& a) {
  return {::refinery::Extra::parameter, a.name, nullptr};
}
inline ::refinery::Extra extra(const arg_v& a) {
  return {::refinery::Extra::parameter, a.name, a.fallback};
}

class module_ {
 public:
  explicit module_(PyObject* module) : module_object_(module) {}
  template <class F, class... E>
  module_& def(const char* name, F&& f, const E&... extras) {
    const ::refinery::Extra all[] = {extra(extras)..., ::refinery::Extra{}};
    ::refinery::define(module_object_, name, ::refinery::bound(std::forward<F>(f)), all,
                       sizeof...(E));
    return *this;
  }
  // `m.doc() = "..."`, `m.attr("version") = "..."`.
  struct Attribute {
    PyObject* module;
    const char* name;
    template <class T>
    void operator=(const T& v) {
      PyObject* value = object_from(v);
      PyObject_SetAttrString(module, name, value);
      Py_XDECREF(value);
    }
  };
  Attribute doc() { return {module_object_, "__doc__"}; }
  Attribute attr(const char* name) { return {module_object_, name}; }

 private:
  PyObject* module_object_;
};

}  // namespace refinery_
}  // namespace pybind11
namespace py = pybind11;

namespace torch {
template <class F>
F&& wrap_pybind_function(F&& f) { return std::forward<F>(f); }
}  // namespace torch

#define PYBIND11_MODULE(name, variable, ...) REFINERY_MODULE(name, variable)
#define REFINERY_MODULE(name, variable)                                          \
  static void refinery_fill_##name(::pybind11::module_&);                        \
  extern "C" __attribute__((visibility("default"))) PyObject* PyInit_##name() {  \
    static PyModuleDef definition;                                               \
    return ::refinery::make_module(definition, #name, [](PyObject* object) {     \
      ::pybind11::module_ module(object);                                        \
      refinery_fill_##name(module);                                              \
      return 0;                                                                  \
    });                                                                          \
  }                                                                              \
  static void refinery_fill_##name(::pybind11::module_& variable)
