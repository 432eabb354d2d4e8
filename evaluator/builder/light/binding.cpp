// The part of binding.h that depends on no type of the candidate's: compiled once a machine.
#include "binding.h"

namespace refinery {
namespace {

struct Parameter {
  std::string name;
  PyObject* fallback = nullptr;
};

struct Candidate {
  std::unique_ptr<Overload> overload;
  std::vector<Parameter> parameters;
  std::string signature;
};

struct Function {
  std::string name;
  std::vector<Candidate> overloads;
  PyMethodDef definition{};
};

// Puts positional and named arguments in the overload's order. False: they do not fit.
bool arrange(const Candidate& candidate, PyObject* const* given, Py_ssize_t positional,
             PyObject* keywords, std::vector<PyObject*>& arguments) {
  const auto& parameters = candidate.parameters;
  const Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  if (static_cast<size_t>(positional + named) > parameters.size()) return false;
  arguments.assign(parameters.size(), nullptr);
  std::copy(given, given + positional, arguments.begin());
  for (Py_ssize_t k = 0; k < named; k++) {
    const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(keywords, k));
    size_t i = 0;
    while (i < parameters.size() && (parameters[i].name.empty() || parameters[i].name != name)) i++;
    if (i == parameters.size() || arguments[i]) return false;
    arguments[i] = given[positional + k];
  }
  for (size_t i = 0; i < arguments.size(); i++) {
    if (!arguments[i]) arguments[i] = parameters[i].fallback;
    if (!arguments[i]) return false;
  }
  return true;
}

void refuse(const Function& function, PyObject* const* given, Py_ssize_t positional,
            PyObject* keywords) {
  std::string message = function.name +
                        "(): incompatible function arguments. The following argument types are "
                        "supported:\n";
  int number = 1;
  for (const auto& candidate : function.overloads) {
    message += "    " + std::to_string(number++) + ". " + candidate.signature + "\n";
  }
  message += "\nInvoked with types: ";
  const Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  for (Py_ssize_t i = 0; i < positional + named; i++) {
    if (i) message += ", ";
    if (i >= positional) {
      message += PyUnicode_AsUTF8(PyTuple_GET_ITEM(keywords, i - positional));
      message += "=";
    }
    message += Py_TYPE(given[i])->tp_name;
  }
  PyErr_SetString(PyExc_TypeError, message.c_str());
}

PyObject* dispatch(PyObject* self, PyObject* const* given, Py_ssize_t positional,
                   PyObject* keywords) {
  auto function = static_cast<Function*>(PyCapsule_GetPointer(self, nullptr));
  if (!function) return nullptr;
  try {
    std::vector<PyObject*> arguments;
    // Of several, one that takes the arguments as they are goes before one that converts them.
    for (int convert = function->overloads.size() < 2; convert < 2; convert++) {
      for (auto& candidate : function->overloads) {
        if (!arrange(candidate, given, positional, keywords, arguments)) continue;
        PyObject* result = candidate.overload->invoke(arguments.data(), convert);
        if (result || PyErr_Occurred()) return result;
      }
    }
    refuse(*function, given, positional, keywords);
  } catch (...) {
    return translate();
  }
  return nullptr;
}

}  // namespace

PyObject* make_list(const std::vector<PyObject*>& items) {
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(items.size()));
  Py_ssize_t i = 0;
  for (PyObject* item : items) PyList_SET_ITEM(list, i++, item);
  return list;
}

PyObject* make_tuple(std::initializer_list<PyObject*> items) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(items.size()));
  Py_ssize_t i = 0;
  for (PyObject* item : items) PyTuple_SET_ITEM(tuple, i++, item);
  return tuple;
}

void define(PyObject* module, const char* name, Overload* overload, const Extra* extras,
            size_t count) {
  PyObject* existing = PyObject_GetAttrString(module, name);
  PyErr_Clear();
  Function* function;
  if (existing && PyCFunction_Check(existing)) {
    function =
        static_cast<Function*>(PyCapsule_GetPointer(PyCFunction_GetSelf(existing), nullptr));
  } else {
    // Lives as long as the process, as the library does.
    function = new Function;
    function->name = name;
    function->definition.ml_name = function->name.c_str();
    function->definition.ml_meth =
        reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&dispatch));
    function->definition.ml_flags = METH_FASTCALL | METH_KEYWORDS;
    PyObject* capsule = PyCapsule_New(function, nullptr, nullptr);
    PyObject* callable = PyCFunction_New(&function->definition, capsule);
    PyObject_SetAttrString(module, name, callable);
    Py_XDECREF(capsule);
    Py_XDECREF(callable);
  }
  Py_XDECREF(existing);

  Candidate candidate;
  candidate.overload.reset(overload);
  candidate.parameters.resize(overload->count);
  size_t next = 0;
  for (const Extra* extra = extras; extra != extras + count; extra++) {
    if (extra->kind == Extra::doc && !function->definition.ml_doc) {
      function->definition.ml_doc = extra->text;
    }
    if (extra->kind == Extra::parameter && next < overload->count) {
      candidate.parameters[next++] = {extra->text, extra->fallback};
    }
  }
  candidate.signature = "(";
  for (size_t i = 0; i < overload->count; i++) {
    const auto& parameter = candidate.parameters[i];
    const auto& type = overload->types[i];
    if (i) candidate.signature += ", ";
    candidate.signature += parameter.name.empty() ? "arg" + std::to_string(i) : parameter.name;
    candidate.signature += std::string(": ") + type.before + type.name + type.after;
  }
  candidate.signature += ")";
  function->overloads.push_back(std::move(candidate));
}

PyObject* translate() {
  try {
    throw;
  } catch (const Failure& e) {
    PyObject* const kinds[] = {PyExc_RuntimeError, PyExc_IndexError, PyExc_ValueError,
                               PyExc_TypeError, PyExc_NotImplementedError};
    PyErr_SetString(kinds[e.kind], e.what());
  } catch (const std::bad_alloc& e) {
    PyErr_SetString(PyExc_MemoryError, e.what());
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "an unknown C++ exception was thrown");
  }
  return nullptr;
}

PyObject* make_module(PyModuleDef& definition, const char* name, int (*fill)(PyObject*)) {
  // Static, because Python keeps pointers to them: a library has one module.
  static int (*filler)(PyObject*);
  static PyModuleDef_Slot slots[] = {
      {Py_mod_exec, reinterpret_cast<void*>(+[](PyObject* module) -> int {
         try {
           return filler(module);
         } catch (...) {
           translate();
           return -1;
         }
       })},
      {0, nullptr}};
  filler = fill;
  definition = {PyModuleDef_HEAD_INIT, name, nullptr, 0, nullptr, slots, nullptr, nullptr, nullptr};
  return PyModuleDef_Init(&definition);
}

}  // namespace refinery
