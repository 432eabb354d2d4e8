// AT_DISPATCH_*: one lambda, compiled for each number type.
#pragma once

#include "tensor.h"

namespace refinery {
inline c10::ScalarType scalar_type_of(c10::ScalarType type) { return type; }
#ifdef REFINERY_DISPATCHES_TYPES
inline c10::ScalarType scalar_type_of(const at::DeprecatedTypeProperties& type) {
  return type.scalarType();
}
#endif
}  // namespace refinery

#define AT_DISPATCH_CASE(which, ...)                                            \
  case which: {                                                                 \
    using scalar_t [[maybe_unused]] = ::c10::impl::ScalarTypeToCPPType<which>::type;  \
    return __VA_ARGS__();                                                       \
  }
#define AT_DISPATCH_SWITCH(type, name, ...)                                     \
  [&] {                                                                         \
    const auto& refinery_type = type;                                           \
    constexpr const char* at_dispatch_name [[maybe_unused]] = name;             \
    const ::c10::ScalarType refinery_st = ::refinery::scalar_type_of(refinery_type); \
    switch (refinery_st) {                                                      \
      __VA_ARGS__                                                               \
      default:                                                                  \
        TORCH_CHECK_NOT_IMPLEMENTED(false, '"', name, "\" not implemented for '", \
                                    ::c10::toString(refinery_st), "'");         \
        __builtin_unreachable();                                                \
    }                                                                           \
  }()

#define REFINERY_FLOATING(...)                   \
  AT_DISPATCH_CASE(::c10::ScalarType::Double, __VA_ARGS__) \
  AT_DISPATCH_CASE(::c10::ScalarType::Float, __VA_ARGS__)
#define REFINERY_INTEGRAL(...)                   \
  AT_DISPATCH_CASE(::c10::ScalarType::Byte, __VA_ARGS__)  \
  AT_DISPATCH_CASE(::c10::ScalarType::Char, __VA_ARGS__)  \
  AT_DISPATCH_CASE(::c10::ScalarType::Int, __VA_ARGS__)   \
  AT_DISPATCH_CASE(::c10::ScalarType::Long, __VA_ARGS__)  \
  AT_DISPATCH_CASE(::c10::ScalarType::Short, __VA_ARGS__)
#define REFINERY_HALF(...) AT_DISPATCH_CASE(::c10::ScalarType::Half, __VA_ARGS__)

#define AT_DISPATCH_FLOATING_TYPES(T, NAME, ...) \
  AT_DISPATCH_SWITCH(T, NAME, REFINERY_FLOATING(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(T, NAME, ...) \
  AT_DISPATCH_SWITCH(T, NAME, REFINERY_FLOATING(__VA_ARGS__) REFINERY_HALF(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND(A, T, NAME, ...) \
  AT_DISPATCH_SWITCH(T, NAME, REFINERY_FLOATING(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(A, B, T, NAME, ...)                     \
  AT_DISPATCH_SWITCH(T, NAME,                                                   \
                     REFINERY_FLOATING(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__) \
                         AT_DISPATCH_CASE(B, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(T, NAME, ...) \
  AT_DISPATCH_SWITCH(T, NAME, REFINERY_INTEGRAL(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(T, NAME, ...) \
  AT_DISPATCH_SWITCH(T, NAME, REFINERY_INTEGRAL(__VA_ARGS__) REFINERY_FLOATING(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND(A, T, NAME, ...)                              \
  AT_DISPATCH_SWITCH(T, NAME,                                                   \
                     REFINERY_INTEGRAL(__VA_ARGS__) REFINERY_FLOATING(__VA_ARGS__) \
                         AT_DISPATCH_CASE(A, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND2(A, B, T, NAME, ...)                          \
  AT_DISPATCH_SWITCH(T, NAME,                                                   \
                     REFINERY_INTEGRAL(__VA_ARGS__) REFINERY_FLOATING(__VA_ARGS__) \
                         AT_DISPATCH_CASE(A, __VA_ARGS__) AT_DISPATCH_CASE(B, __VA_ARGS__))
